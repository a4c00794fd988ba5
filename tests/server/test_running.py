import asyncio
import threading
from pathlib import Path

import pytest
from mcp import Client

from app.data_files import data_path
from app.liara.corpus import LIARA_SPEC
from app.library.library import DocumentLibrary
from app.server.mcp_server import build_server
from app.server.metrics import Metrics
from app.server.running import RunningLibrary

pytestmark = pytest.mark.anyio


class SlowLibrary(DocumentLibrary):
    """A library that loads when it is told to."""

    may_load: threading.Event

    def load(self) -> None:
        assert self.may_load.wait(10)
        super().load()


class BrokenLibrary(DocumentLibrary):
    """A library that meets what nobody thought of."""

    def load(self) -> None:
        raise RuntimeError("unforeseen")


def library(kind: type[DocumentLibrary], data_dir: Path) -> DocumentLibrary:
    return kind(
        [LIARA_SPEC], data_dir=data_dir, starter_dir=data_path("starter"), sync_on_start=False
    )


async def test_a_call_made_while_the_library_loads_is_answered_from_it(data_dir: Path) -> None:
    slow = library(SlowLibrary, data_dir)
    assert isinstance(slow, SlowLibrary)
    slow.may_load = threading.Event()
    running = RunningLibrary(slow)
    server = build_server(slow, Metrics(), until_ready=running.loaded.wait)
    async with running.serve(), Client(server) as client:
        call = asyncio.create_task(client.call_tool("search_docs", {"query": "disk"}))
        assert (await client.list_tools()).tools
        assert not call.done()
        assert not slow.ready
        slow.may_load.set()
        answer = await call
    assert not answer.is_error
    assert "https://docs.liara.ir/" in str(getattr(answer.content[0], "text", ""))


async def test_a_library_that_cannot_be_loaded_leaves_the_process_up_and_not_ready(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = library(BrokenLibrary, data_dir)
    running = RunningLibrary(broken)
    server = build_server(broken, Metrics(), until_ready=running.loaded.wait)
    async with running.serve(), Client(server) as client:
        answer = await client.call_tool("search_docs", {"query": "disk"})
    assert answer.is_error
    assert "unforeseen" not in str(answer.content)
    assert "unforeseen" in caplog.text
    assert not broken.ready
