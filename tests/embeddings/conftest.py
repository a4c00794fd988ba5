import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.embeddings.endpoint import Endpoint, serving_embeddings


@pytest.fixture(scope="session")
def endpoint_server() -> Iterator[Endpoint]:
    with serving_embeddings() as served:
        yield served


@pytest.fixture
def endpoint(endpoint_server: Endpoint) -> Iterator[Endpoint]:
    """A server that answers well until a test tells it otherwise."""
    endpoint_server.reset()
    yield endpoint_server
    endpoint_server.reset()


class RedisServer:
    """A real Redis on a free port of loopback, which a test may stop and start."""

    def __init__(self, binary: str, port: int) -> None:
        self.port = port
        self._command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.01)
            else:
                return
        raise AssertionError("redis-server does not listen")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = RedisServer(binary, port)
    server.start()
    yield server
    server.stop()
