"""Real git repositories, and loopback HTTP servers in front of them."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Repository:
    """A git repository that a test fills."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=T", "-c", "user.email=t@example.com", *arguments],
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode("utf-8").strip()

    def commit(self, files: dict[str, str | bytes]) -> str:
        """Write files, commit everything and return the commit."""
        for path, content in files.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=change")
        return self.git("rev-parse", "HEAD")


@contextmanager
def http_server(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on a free loopback port; yields host:port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def git_over_http(root: Path, user: str, password: str) -> type[BaseHTTPRequestHandler]:
    """Return a handler that serves the repositories below a folder to one user."""
    pair = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _answer(self, body: bytes) -> None:
            if self.headers.get("Authorization") != f"Basic {pair}":
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="docs"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            environment = {
                **os.environ,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(
                ["git", "http-backend"],
                env=environment,
                input=body,
                capture_output=True,
                check=True,
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            self.send_response(200)
            for line in head.decode("ascii").split("\r\n"):
                name, _, value = line.partition(": ")
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test output clean."""

    return Handler


def silent_server(stop: threading.Event) -> type[BaseHTTPRequestHandler]:
    """Return a handler that takes a request and answers only when the test is over."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stop.wait(30)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test output clean."""

    return Handler
