from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from mcp import Client

from app.server.application import open_library
from app.server.mcp_server import build_server
from app.server.metrics import Metrics
from app.settings import Settings
from tests.server.liara_pages import official_library, starter_library
from tests.server.serving import Served, serving


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which the index of the starter pages is built already."""
    folder = tmp_path_factory.mktemp("data")
    open_library(Settings.from_env({"DATA_DIR": str(folder)}), Metrics()).load()
    return folder


@pytest.fixture(scope="session")
def environ(data_dir: Path) -> dict[str, str]:
    """The least environment of a server that stays off the network."""
    return {"DATA_DIR": str(data_dir), "SYNC_ON_START": "0", "PORT": "0"}


@pytest.fixture(scope="session")
def served(environ: dict[str, str]) -> Iterator[Served]:
    """The whole server over the starter pages, on a loopback port."""
    with serving(environ) as running:
        yield running


@pytest.fixture(scope="module")
async def starter(data_dir: Path) -> AsyncIterator[Client]:
    """A client of the Liara tools over the starter pages."""
    async with Client(build_server(starter_library(data_dir), Metrics())) as client:
        yield client


@pytest.fixture(scope="module")
async def official(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Client]:
    """A client of the Liara tools over a fetched corpus: the `PAGES` of the test module."""
    pages = request.module.PAGES
    library = await official_library(tmp_path_factory.mktemp("official"), pages)
    async with Client(build_server(library, Metrics())) as client:
        yield client
