from collections.abc import Iterator
from pathlib import Path

import pytest

from app.server.application import open_library
from app.server.metrics import Metrics
from app.settings import Settings
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
