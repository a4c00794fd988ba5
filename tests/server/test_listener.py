"""The socket side of the server against a client that does not read."""

import socket
import threading

from starlette.types import Receive, Scope, Send

from app.server.listener import uvicorn_config
from tests.server.serving import SignallingServer


def test_a_client_that_does_not_read_its_answer_is_let_go() -> None:
    ended = threading.Event()

    async def endless(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        # More than the buffers on the way can take.
        for _ in range(500):
            await send({"type": "http.response.body", "body": bytes(200_000), "more_body": True})
        ended.set()

    config = uvicorn_config(
        endless,
        host="127.0.0.1",
        port=0,
        head_timeout_seconds=10,
        shutdown_seconds=1,
        write_timeout_seconds=0.2,
    )
    config.lifespan = "off"
    server = SignallingServer(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.listening.wait(20)
        with socket.create_connection(server.servers[0].sockets[0].getsockname()) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            # Sending to a connection that has been cut off does not wait.
            assert ended.wait(20)
    finally:
        server.should_exit = True
        thread.join(20)
