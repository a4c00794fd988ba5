"""The socket side of `serve`: uvicorn, with limits on the time and size of request headers."""

import asyncio
from typing import ClassVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# HeaderLimit answers 431 above 16 KiB; what goes on without end is cut off here.
_MAX_HEAD_BYTES = 65_536

# Longer than the 60 s that nginx and most load balancers keep an idle connection, so that they
# never send a request on one that is being closed here.
_KEEP_ALIVE_SECONDS = 65

# What is waiting to be sent has to shrink by some ten kilobytes within this time.
_WRITE_SECONDS = 30.0


class HeadDeadlineProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, closing connections of clients that send or read too slowly.

    uvicorn has no such limits: a client that sends a byte now and then holds its connection.
    """

    head_timeout_seconds: ClassVar[float]
    write_timeout_seconds: ClassVar[float]
    _bytes_besides_body = 0
    _head_timer: asyncio.TimerHandle | None = None
    _rest_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock: a connection that says nothing is closed, too."""
        super().connection_made(transport)
        self._start_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._end_head()
        self._end_rest()
        self._end_write()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass the bytes on, as long as headers, chunk extensions and trailers come to an end."""
        self._bytes_besides_body += len(data)
        super().data_received(data)
        if self._bytes_besides_body > _MAX_HEAD_BYTES:
            self._give_up()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers, which the parser reports in the same way, are dropped.

        uvicorn would add them to the headers of the request, in any number.
        """
        if self._head_timer is not None:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Count anew: whoever reads the body limits its size."""
        self._bytes_besides_body = 0
        super().on_body(body)

    def on_message_begin(self) -> None:
        """Start the clock for a further request on the connection."""
        super().on_message_begin()
        self._end_rest()
        if self._head_timer is None:
            self._start_head()

    def on_headers_complete(self) -> None:
        """Stop the clock: the body has a deadline of its own."""
        self._end_head()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Give a request that was answered before its body came some time for the rest.

        uvicorn stops its own clock at the first byte of it, and would wait without end.
        """
        if self.cycle.response_complete and self.cycle.more_body:
            self._rest_timer = self.loop.call_later(self.head_timeout_seconds, self._give_up)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the clock: a client that reads nothing would hold its request for ever."""
        super().pause_writing()
        self._end_write()
        # Not close(), which waits until everything is sent.
        self._write_timer = self.loop.call_later(self.write_timeout_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the clock: the client reads."""
        self._end_write()
        super().resume_writing()

    def _end_write(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _end_rest(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def _start_head(self) -> None:
        self._bytes_besides_body = 0
        self._head_timer = self.loop.call_later(self.head_timeout_seconds, self._give_up)

    def _end_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._end_head()
        if not self.transport.is_closing():
            self.transport.close()


def uvicorn_config(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    head_timeout_seconds: float,
    shutdown_seconds: int,
    write_timeout_seconds: float = _WRITE_SECONDS,
) -> uvicorn.Config:
    """Return the configuration under which `serve` runs the application."""

    class Protocol(HeadDeadlineProtocol):
        pass

    Protocol.head_timeout_seconds = head_timeout_seconds
    Protocol.write_timeout_seconds = write_timeout_seconds
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Protocol,
        ws="none",
        lifespan="on",
        # Logging is configured once, in cli.py.
        log_config=None,
        access_log=False,
        server_header=False,
        # Nothing here depends on the client's address or scheme, so no forwarded header is
        # believed; landing.py reads X-Forwarded-Proto for the text that it shows.
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=shutdown_seconds,
    )
