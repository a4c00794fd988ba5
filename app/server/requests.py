"""What stands between a socket and POST /mcp: method, size, time and number of requests.

The SDK holds a GET open as a stream that never sends anything, waits for a slow body for ever,
and limits neither headers nor the number of requests.
"""

from collections import deque
from collections.abc import Awaitable, Callable

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Bodies may be read while others are worked on, so that slow clients do not keep out quick ones.
_READING_PER_WORKING = 4
# All bodies in memory together, whatever the numbers above allow.
_MAX_HELD_BYTES = 64 * 1024 * 1024
# A little too large a body is read to its end and dropped: closing the connection on a client that
# still sends would lose it the answer.
_DRAINED_BYTES = 8 * 1024 * 1024
_RETRY_AFTER = {"Retry-After": "1"}
_ANY_ACCEPT = "application/json, text/event-stream"

OnRefusal = Callable[[str], None]


class HeaderLimit:
    """Refuse requests with too many or too long headers (431)."""

    def __init__(self, app: ASGIApp, on_refusal: OnRefusal, max_bytes: int = 16_384) -> None:
        """Guard `app`; `max_bytes` counts names, values and the path with its query."""
        self._app = app
        self._on_refusal = on_refusal
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it here."""
        if scope["type"] != "http" or _head_bytes(scope) <= self._max_bytes:
            await self._app(scope, receive, send)
            return
        self._on_refusal("headers")
        refusal = JSONResponse({"error": "request headers too large"}, 431, {"Connection": "close"})
        await refusal(scope, receive, send)


def _head_bytes(scope: Scope) -> int:
    head = len(scope.get("raw_path", b"")) + len(scope["query_string"])
    return head + sum(len(name) + len(value) for name, value in scope["headers"])


class Slots:
    """Counts what is going on at once, up to a limit; nothing waits."""

    def __init__(self, limit: int) -> None:
        """Start with every slot free."""
        self._free = limit

    def take(self) -> bool:
        """Take a slot; false when there is none."""
        if self._free == 0:
            return False
        self._free -= 1
        return True

    def give_back(self) -> None:
        """Free a slot that was taken."""
        self._free += 1


class MethodGuard:
    """Answers anything but POST at once: 405, or a page for a browser (`Accept: text/html`)."""

    def __init__(self, app: ASGIApp, page: Callable[[Scope], Response]) -> None:
        """Guard `app`; `page` makes the answer for a browser."""
        self._app = app
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a POST request on, or answer here."""
        respond = self._app if scope["method"] == "POST" else self._answer(scope)
        await respond(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        accept = Headers(scope=scope).get("accept", "")
        if scope["method"] in ("GET", "HEAD") and "text/html" in accept.lower():
            return self._page(scope)
        error = {"error": "this endpoint answers POST only: it is stateless and pushes nothing"}
        return JSONResponse(error, 405, {"Allow": "POST"})


class PostGate:
    """Lets complete, small enough requests through to the MCP endpoint, so many at once."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        on_refusal: OnRefusal,
        max_body_bytes: int,
        max_concurrent: int,
        body_timeout_seconds: float,
        max_held_bytes: int = _MAX_HELD_BYTES,
    ) -> None:
        """Guard `app` with limits of size, number and time."""
        self._app = app
        self._on_refusal = on_refusal
        self._max_body_bytes = max_body_bytes
        self._body_timeout_seconds = body_timeout_seconds
        self._working = Slots(max_concurrent)
        self._reading = Slots(max_concurrent * _READING_PER_WORKING)
        self._max_held_bytes = max_held_bytes
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it here."""
        body = bytearray()
        try:
            refusal = await self._holding(self._reading, lambda: self._read(scope, receive, body))
            if refusal is None:
                ready, replay = _with_clean_headers(scope), _replay(bytes(body), receive)
                refusal = await self._holding(self._working, lambda: self._app(ready, replay, send))
        finally:
            self._held_bytes -= len(body)
        if refusal is not None:
            await refusal(scope, receive, send)

    async def _holding(
        self, slots: Slots, work: Callable[[], Awaitable[Response | None]]
    ) -> Response | None:
        if not slots.take():
            return self._busy()
        try:
            return await work()
        finally:
            slots.give_back()

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> Response | None:
        """Fill `body`; return the refusal of one that is too large or too slow."""
        most_read = self._max_body_bytes + _DRAINED_BYTES
        if _declared_size(scope) > most_read:
            return self._refuse("body", 413, "request body too large")
        size, more = 0, True
        try:
            with anyio.fail_after(self._body_timeout_seconds):
                while more and size <= most_read:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return Response(status_code=400)
                    part = message.get("body", b"")
                    size, more = size + len(part), message.get("more_body", False)
                    if size <= self._max_body_bytes:
                        self._held_bytes += len(part)
                        body += part
                    if self._held_bytes > self._max_held_bytes:
                        return self._busy()
        except TimeoutError:
            return self._refuse("slow", 408, "the request body took too long")
        if size > self._max_body_bytes:
            return self._refuse("body", 413, "request body too large")
        return None

    def _busy(self) -> Response:
        self._on_refusal("busy")
        return JSONResponse({"error": "too many requests at once"}, 503, _RETRY_AFTER)

    def _refuse(self, reason: str, status: int, error: str) -> Response:
        self._on_refusal(reason)
        # The rest of the body is not read, so the connection cannot be used again.
        return JSONResponse({"error": error}, status, {"Connection": "close"})


def _declared_size(scope: Scope) -> int:
    declared = Headers(scope=scope).get("content-length", "")
    return int(declared) if declared.isascii() and declared.isdigit() and len(declared) < 16 else 0


def _with_clean_headers(scope: Scope) -> Scope:
    """Strip white space that httptools leaves around values; let a missing Accept pass."""
    cleaned = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
    scope = {**scope, "headers": cleaned}
    headers = MutableHeaders(scope=scope)
    if not headers.get("accept", "").strip():
        headers["accept"] = _ANY_ACCEPT
    return scope


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive that hands out the body that was read, then what the client does next."""
    messages = deque[Message]([{"type": "http.request", "body": body, "more_body": False}])

    async def replay() -> Message:
        return messages.popleft() if messages else await receive()

    return replay
