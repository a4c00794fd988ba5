"""Runs the real application on a loopback port, in a thread."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from app.server.application import create_app
from app.server.listener import uvicorn_config
from app.settings import Settings

MODERN = "2026-07-28"
HANDSHAKE = "2025-06-18"


class SignallingServer(uvicorn.Server):
    """A uvicorn server that says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@dataclass(frozen=True)
class Served:
    """A server that runs."""

    port: int
    server: SignallingServer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    def call(
        self, method: str, params: dict[str, Any] | None = None, **more: Any
    ) -> httpx.Response:
        """POST one request of the handshake era, without a handshake."""
        return httpx.post(more.pop("url", self.mcp), **post(method, params, **more))

    def raw(self, request: bytes) -> bytes:
        """Send bytes and read until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(request)
            return read_all(connection)


def post(
    method: str, params: dict[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return what httpx needs to POST one request."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
    if params is not None:
        body["params"] = params
    accept = {"Accept": "application/json, text/event-stream"}
    return {"json": body, "headers": accept | dict(headers or {})}


def read_all(connection: socket.socket) -> bytes:
    """Read until the other side closes."""
    received = b""
    # A server that closes without having read everything resets the connection.
    with suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            received += part
    return received


@contextmanager
def serving(environ: Mapping[str, str]) -> Iterator[Served]:
    """Serve until the context ends, then shut down in the way that a signal does."""
    settings = Settings.from_env(environ)
    config = uvicorn_config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        head_timeout_seconds=settings.request_timeout_seconds,
        shutdown_seconds=settings.shutdown_seconds,
    )
    server = SignallingServer(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.listening.wait(20)
        yield Served(server.servers[0].sockets[0].getsockname()[1], server)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
