import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from app.server.requests import PostGate

pytestmark = pytest.mark.anyio

Answer = Callable[[Request], Awaitable[PlainTextResponse]]


def gate(answer: Answer, refused: list[str], **limits: int) -> httpx.AsyncClient:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await answer(Request(scope, receive))
        await response(scope, receive, send)

    limited = PostGate(
        app,
        on_refusal=refused.append,
        max_body_bytes=limits.get("max_body_bytes", 1000),
        max_concurrent=limits.get("max_concurrent", 2),
        max_held_bytes=limits.get("max_held_bytes", 10_000),
        body_timeout_seconds=5,
    )
    transport = httpx.ASGITransport(app=limited)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def test_requests_beyond_the_limit_get_503_and_later_ones_pass_again() -> None:
    entered, release, refused = asyncio.Semaphore(0), asyncio.Event(), list[str]()

    async def answer(_request: Request) -> PlainTextResponse:
        entered.release()
        await release.wait()
        return PlainTextResponse("done")

    async with gate(answer, refused, max_concurrent=2) as client:
        working = [asyncio.create_task(client.post("/mcp", content=b"x")) for _ in range(2)]
        for _ in working:
            await entered.acquire()
        busy = await client.post("/mcp", content=b"x")
        assert busy.status_code == 503
        assert busy.headers["Retry-After"] == "1"
        assert busy.json()["error"]
        release.set()
        assert [response.text for response in await asyncio.gather(*working)] == ["done", "done"]
        assert (await client.post("/mcp", content=b"x")).text == "done"
    assert refused == ["busy"]


async def test_bodies_in_memory_are_limited_together_and_freed() -> None:
    entered, release = asyncio.Semaphore(0), asyncio.Event()

    async def answer(_request: Request) -> PlainTextResponse:
        entered.release()
        await release.wait()
        return PlainTextResponse("done")

    async with gate(answer, [], max_held_bytes=1500) as client:
        first = asyncio.create_task(client.post("/mcp", content=b"x" * 1000))
        await entered.acquire()
        assert (await client.post("/mcp", content=b"x" * 501)).status_code == 503
        release.set()
        assert (await first).text == "done"
        for _ in range(3):
            assert (await client.post("/mcp", content=b"x" * 1000)).text == "done"


async def test_a_request_that_fails_gives_its_place_back() -> None:
    async def answer(_request: Request) -> PlainTextResponse:
        raise RuntimeError

    async with gate(answer, [], max_concurrent=1) as client:
        for _ in range(3):
            with pytest.raises(RuntimeError):
                await client.post("/mcp", content=b"x")


async def test_the_body_arrives_whole_behind_the_gate() -> None:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 100

    async with gate(answer, []) as client:
        assert (await client.post("/mcp", content=parts())).text == "1000"
        assert (await client.post("/mcp", content=b"")).text == "0"


async def test_a_client_that_leaves_while_it_sends_is_not_passed_on() -> None:
    passed: list[Scope] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        passed.append(scope)

    limited = PostGate(
        app,
        on_refusal=lambda _reason: None,
        max_body_bytes=1000,
        max_concurrent=1,
        body_timeout_seconds=5,
    )
    messages = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    async def send(_message: Message) -> None:
        return None

    scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": []}
    await limited(scope, receive, send)
    assert passed == []
