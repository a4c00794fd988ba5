"""An OpenAI-compatible /embeddings server on loopback that fails in the way it is told to."""

import asyncio
import base64
import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tests.embeddings.models import DIMENSION, rows_of

KEY = "sk-test-5f3a9c"
MODEL = "trigrams"

Answer = Callable[[Any, "Endpoint"], Awaitable[Response]]


@dataclass
class Endpoint:
    """The server as a test sees it: what it is to do, and what it has seen."""

    mode: str = "good"
    modes: deque[str] = field(default_factory=deque)
    texts: list[list[str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    connections: set[int] = field(default_factory=set)
    running: int = 0
    most_running: int = 0
    # Calls wait here while it is closed; a closed one is opened when the server ends.
    gate: threading.Event = field(default_factory=threading.Event)
    called: threading.Event = field(default_factory=threading.Event)
    open_connections: Callable[[], int] = lambda: 0
    slow_seconds: float = 1.0
    port: int = 0
    scheme: str = "http"

    @property
    def base_url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1"

    def reset(self) -> None:
        """Forget what was seen, and answer well again."""
        fresh = Endpoint(port=self.port, scheme=self.scheme, open_connections=self.open_connections)
        self.gate.set()
        vars(self).update(vars(fresh))

    @property
    def calls(self) -> int:
        return len(self.texts)

    async def embeddings(self, request: Request) -> Response:
        body = await request.json()
        assert request.client is not None
        self.connections.add(request.client.port)
        self.keys.add(request.headers.get("Authorization", ""))
        self.bodies.append(body)
        self.texts.append(body["input"])
        self.called.set()
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            mode = self.modes.popleft() if self.modes else self.mode
            return await ANSWERS[mode](body["input"], self)
        finally:
            self.running -= 1


def _answer(rows: Any, **more: Any) -> Response:
    data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
    # Not JSONResponse: it refuses NaN, which a broken endpoint does send.
    return Response(json.dumps({"data": data, **more}), media_type="application/json")


async def _good(texts: list[str], _endpoint: Endpoint) -> Response:
    return _answer(rows_of(texts).tolist())


async def _base64(texts: list[str], _endpoint: Endpoint) -> Response:
    return _answer([base64.b64encode(row.tobytes()).decode() for row in rows_of(texts)])


async def _backwards(texts: list[str], _endpoint: Endpoint) -> Response:
    rows = rows_of(texts).tolist()
    data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
    return JSONResponse({"data": data[::-1]})


async def _held(texts: list[str], endpoint: Endpoint) -> Response:
    await asyncio.to_thread(endpoint.gate.wait, 30)
    return await _good(texts, endpoint)


async def _slow(texts: list[str], endpoint: Endpoint) -> Response:
    await asyncio.sleep(endpoint.slow_seconds)
    return await _good(texts, endpoint)


async def _cut(_texts: list[str], _endpoint: Endpoint) -> Response:
    # Less than was announced: the server closes the connection in the middle of the answer.
    return Response(b"{", headers={"Content-Length": "1000"})


async def _html(_texts: list[str], _endpoint: Endpoint) -> Response:
    return Response("<html>Welcome to the hotel</html>", media_type="text/html")


async def _too_few(texts: list[str], _endpoint: Endpoint) -> Response:
    return _answer(rows_of(texts).tolist()[1:])


async def _other_dimension(texts: list[str], _endpoint: Endpoint) -> Response:
    return _answer(rows_of(texts, DIMENSION // 2).tolist())


async def _ragged(texts: list[str], _endpoint: Endpoint) -> Response:
    return _answer([[1.0] * (place + 3) for place in range(len(texts) + 1)])


async def _nan(texts: list[str], _endpoint: Endpoint) -> Response:
    return _answer(np.full((len(texts), DIMENSION), np.nan).tolist())


async def _zeros(texts: list[str], _endpoint: Endpoint) -> Response:
    return _answer(np.zeros((len(texts), DIMENSION)).tolist())


async def _constant(texts: list[str], _endpoint: Endpoint) -> Response:
    return _answer(np.ones((len(texts), DIMENSION)).tolist())


def _status(status: int, **headers: str) -> Answer:
    async def answer(_texts: list[str], _endpoint: Endpoint) -> Response:
        return PlainTextResponse(f"you sent {KEY}", status, headers)

    return answer


ANSWERS: dict[str, Answer] = {
    "good": _good,
    "base64": _base64,
    "backwards": _backwards,
    "held": _held,
    "slow": _slow,
    "cut": _cut,
    "html": _html,
    "too few": _too_few,
    "other dimension": _other_dimension,
    "ragged": _ragged,
    "nan": _nan,
    "zeros": _zeros,
    "constant": _constant,
    "401": _status(401),
    "429 later": _status(429, **{"Retry-After": "30"}),
    "503": _status(503),
    "redirect": _status(307, Location="http://127.0.0.1:9/v1/embeddings"),
}


class _Server(uvicorn.Server):
    """A uvicorn server that says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@contextmanager
def serving_embeddings(certificate: tuple[Path, Path] | None = None) -> Iterator[Endpoint]:
    """Serve on a free port of loopback until the context ends; with TLS if a key is given."""
    endpoint = Endpoint(scheme="https" if certificate else "http")
    app = Starlette(routes=[Route("/v1/embeddings", endpoint.embeddings, methods=["POST"])])
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        log_config=None,
        access_log=False,
        ssl_certfile=str(certificate[0]) if certificate else None,
        ssl_keyfile=str(certificate[1]) if certificate else None,
    )
    server = _Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.listening.wait(20)
        endpoint.open_connections = lambda: len(server.server_state.connections)
        endpoint.port = server.servers[0].sockets[0].getsockname()[1]
        yield endpoint
    finally:
        endpoint.gate.set()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
