import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

import anyio
import pytest
from mcp import Client, MCPError
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from app.errors import DocumentNotFoundError, InvalidQueryError
from app.server.mcp_server import DocsServer
from app.server.metrics import Metrics

pytestmark = pytest.mark.anyio

Colour = Literal["red", "green"]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Ends every tool call that blocks."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def server(metrics: Metrics, released: threading.Event) -> DocsServer:  # noqa: C901
    """A server whose tools fail in every way that ours can."""
    made = DocsServer(
        instructions="",
        metrics=metrics,
        timeout_seconds=0.05,
        untimed_tools={"patient"},
    )

    def paint(colour: Colour, coats: Annotated[int, Field(ge=1, le=8)] = 1) -> str:
        """Paint."""
        return f"{colour} {coats}"

    def refuse(reason: str) -> str:
        """Refuse."""
        raise InvalidQueryError(f"The query {reason}. Name a key word.")

    def refuse_plainly() -> str:
        """Refuse in the words of the SDK."""
        raise ToolError("Not today.")

    def crash() -> str:
        """Crash."""
        raise RuntimeError("secret path /srv/x")

    def block() -> str:
        """Block the worker thread."""
        released.wait(10)
        return "late"

    async def patient() -> str:
        """Take longer than the deadline of other tools."""
        await asyncio.sleep(0.1)
        return "done"

    for tool in (paint, refuse, refuse_plainly, crash, block, patient):
        made.add_tool(tool, structured_output=False)

    @made.prompt()
    def deploy(platform: Colour, note: str = "") -> str:
        """Deploy."""
        if note == "crash":
            raise RuntimeError("secret path /srv/x")
        if note == "refuse":
            raise InvalidQueryError("That note is not possible.")
        return f"deploy {platform}"

    @made.resource("docs://{name}", mime_type="text/markdown")
    def page(name: str) -> str:
        """Read a page."""
        if name == "crash":
            raise RuntimeError("secret path /srv/x")
        raise DocumentNotFoundError(f"There is no page {name}.")

    return made


@pytest.fixture(params=["legacy", "2026-07-28"])
async def client(server: DocsServer, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with Client(server, mode=request.param) as connected:
        yield connected


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert len(result.content) == 1
    return str(getattr(result.content[0], "text", ""))


async def test_arguments_that_do_not_fit_are_explained_without_echo_or_links(
    client: Client,
) -> None:
    said = await refusal(client, "paint", colour="hot pink", coats=9)
    assert "colour: Input should be 'red' or 'green'" in said
    assert "coats: Input should be less than or equal to 8" in said
    assert "Arguments of paint: colour, coats." in said
    assert "pydantic" not in said
    assert "hot pink" not in said
    assert "colour: Field required" in await refusal(client, "paint")


async def test_a_refusal_of_ours_reaches_the_model_word_for_word(client: Client) -> None:
    assert await refusal(client, "refuse", reason="is empty") == (
        "The query is empty. Name a key word."
    )
    assert await refusal(client, "refuse_plainly") == "Not today."


async def test_a_crash_shows_nothing_but_the_name_of_the_tool(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    said = await refusal(client, "crash")
    assert "crash" in said
    assert "secret" not in said
    assert "RuntimeError" in caplog.text


async def test_an_unknown_tool_is_answered_with_the_names_of_the_known_ones(
    client: Client, metrics: Metrics
) -> None:
    said = await refusal(client, "pant", colour="red")
    assert "'pant'" in said
    assert "paint" in said
    assert value(metrics, "tool_calls_total", tool="unknown", outcome="error") == 1
    assert value(metrics, "tool_calls_total", tool="pant", outcome="error") is None


async def test_a_call_that_takes_too_long_is_answered_and_does_not_block_the_next(
    client: Client, metrics: Metrics
) -> None:
    assert "0.05 seconds" in await refusal(client, "block")
    assert not (await client.call_tool("paint", {"colour": "red"})).is_error
    assert value(metrics, "tool_calls_total", tool="block", outcome="timeout") == 1
    assert value(metrics, "tool_calls_total", tool="paint", outcome="ok") == 1
    assert value(metrics, "tool_seconds_count", tool="paint") == 1


async def test_calls_that_never_end_cannot_take_every_worker_thread(
    client: Client, released: threading.Event, server: DocsServer
) -> None:
    said = await asyncio.gather(*(refusal(client, "block") for _ in range(16)))
    assert all("0.05 seconds" in text for text in said)
    assert "busy" in await refusal(client, "paint", colour="red")
    released.set()
    with anyio.fail_after(5):
        while server.overdue_calls:  # noqa: ASYNC110
            await anyio.sleep(0.001)
    assert not (await client.call_tool("paint", {"colour": "red"})).is_error


async def test_an_exempt_tool_has_no_deadline(client: Client) -> None:
    assert not (await client.call_tool("patient", {})).is_error


async def test_calls_wait_until_the_library_is_loaded(metrics: Metrics) -> None:
    loaded = asyncio.Event()
    server = DocsServer(
        instructions="", metrics=metrics, timeout_seconds=10, until_ready=loaded.wait
    )
    server.add_tool(lambda: "served", name="ask", description="Ask.", structured_output=False)
    async with Client(server) as client:
        call = asyncio.create_task(client.call_tool("ask", {}))
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask"]
        assert not call.done()
        loaded.set()
        assert not (await call).is_error


@pytest.mark.parametrize(
    ("name", "arguments", "code", "part"),
    [
        ("deplay", {}, -32602, "Prompts: deploy"),
        ("deploy", {}, -32602, "needs the arguments: platform"),
        ("deploy", {"platform": "blue"}, -32602, "platform: Input should be"),
        ("deploy", {"platform": "red", "note": "refuse"}, -32602, "That note is not possible."),
        ("deploy", {"platform": "red", "note": "crash"}, -32603, "could not be rendered"),
    ],
)
async def test_a_prompt_that_cannot_be_rendered_is_a_clean_protocol_error(
    client: Client, name: str, arguments: dict[str, str], code: int, part: str
) -> None:
    with pytest.raises(MCPError) as failure:
        await client.get_prompt(name, arguments)
    assert failure.value.error.code == code
    assert part in failure.value.error.message
    assert "secret" not in failure.value.error.message
    assert "pydantic" not in failure.value.error.message


async def test_a_page_that_the_library_refuses_is_not_found_with_the_reason(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(MCPError) as failure:
        await client.read_resource("docs://nowhere")
    assert failure.value.error.code == -32602
    assert failure.value.error.message == "There is no page nowhere."
    assert caplog.text == ""
    with pytest.raises(MCPError) as crash:
        await client.read_resource("docs://crash")
    assert "secret" not in crash.value.error.message


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"liara_docs_mcp_{name}", labels)
