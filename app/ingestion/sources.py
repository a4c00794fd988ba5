"""Sources: a local folder in place, or a git repository of which only the needed files are taken.

The only module that runs another program: git, without prompts and until a deadline.
"""

import atexit
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from app.errors import SourceUnavailableError
from app.ingestion.checkout import GitCheckout, find_ref
from app.ingestion.files import (
    FileListing,
    SourceFile,
    SourceTree,
    list_files,
    read_file,
    stat_fingerprint,
)
from app.ingestion.git_url import (
    GitUrl,
    check_ref,
    display_source,
    is_full_sha,
    is_git_source,
    mask,
    parse_git_url,
)
from app.ingestion.globs import check_glob, path_matcher
from app.ingestion.work_tree import head_of_work_tree
from app.models import Progress

__all__ = [
    "FileListing",
    "SourceFile",
    "SourceTree",
    "check_glob",
    "display_source",
    "fetch_source",
    "is_git_source",
    "list_files",
    "path_matcher",
    "read_file",
    "remote_revision",
    "stat_fingerprint",
]

_MAX_ERROR_CHARS = 400
# A helper that left the group (a shared ssh connection) may keep git's pipes open.
_JOIN_SECONDS = 2.0

# Variables that point git elsewhere or make it talk would reach us from a hook or a debugging
# shell. What an operator uses to reach a server stays.
_KEPT_GIT_VARIABLES = ("GIT_SSH", "GIT_SSL_", "GIT_PROXY_", "GIT_HTTP_", "GIT_CONFIG_")

_SAFE_CONFIG = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", os.devnull),
    ("core.protectNTFS", "true"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("submodule.recurse", "false"),
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "30"),
    ("advice.detachedHead", "false"),
)


def fetch_source(
    source: str,
    ref: str,
    include: Sequence[str],
    checkout: Path,
    *,
    timeout_seconds: float = 120,
    ca_bundle: Path | None = None,
    progress: Progress | None = None,
) -> SourceTree:
    """Make a source readable on disk and return where it is.

    A local folder is used in place. Of a git repository, the files that `include` selects are
    brought up to date below `checkout`.

    Raises:
        SourceUnavailableError: No such folder; or git failed, asked for a password, or took longer
            than the timeout.
    """
    if not is_git_source(source):
        return _local_tree(source)
    url = parse_git_url(source)
    check_ref(ref)
    git = _Git(url, checkout / "repo.git", time.monotonic() + timeout_seconds, ca_bundle)
    try:
        return GitCheckout(git, checkout, include, progress).update(ref)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SourceUnavailableError(f"cannot write the checkout: {reason}") from error


def remote_revision(
    source: str, ref: str, timeout_seconds: float = 30, *, ca_bundle: Path | None = None
) -> str | None:
    """Return the commit that a ref of a source stands for now; None when that cannot be told."""
    if not is_git_source(source):
        with suppress(SourceUnavailableError):
            return _local_tree(source).rev
        return None
    if is_full_sha(ref):
        return ref
    try:
        check_ref(ref)
        git = _Git(
            parse_git_url(source), Path(os.devnull), time.monotonic() + timeout_seconds, ca_bundle
        )
        found = find_ref(git, ref)
    except SourceUnavailableError:
        return None
    return found.commit if found else None


def _local_tree(source: str) -> SourceTree:
    try:
        root = Path(source).expanduser()
        if not root.is_dir():
            raise SourceUnavailableError(f"{source} is not a folder")
        root = root.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise SourceUnavailableError(f"{source} cannot be read: {error}") from None
    return SourceTree(root, "file", head_of_work_tree(root), None)


class _Git:
    """Runs git for one source until a deadline, without prompts; errors carry no secret."""

    def __init__(self, url: GitUrl, git_dir: Path, deadline: float, ca_bundle: Path | None) -> None:
        self.url = url
        self.git_dir = git_dir
        self._deadline = deadline
        self._ca_bundle = ca_bundle

    @property
    def remaining_seconds(self) -> float:
        """The time left until the deadline."""
        return self._deadline - time.monotonic()

    def run(self, *arguments: str, stdin: bytes = b"", offline: bool = False) -> bytes:
        """Run one git command in the repository and return its output."""
        with self.stream(*arguments, stdin=stdin, offline=offline) as output:
            return output.read()

    @contextmanager
    def stream(
        self, *arguments: str, stdin: bytes = b"", offline: bool = False
    ) -> Iterator[IO[bytes]]:
        """Run one git command and give its output to read while it runs."""
        remaining = self.remaining_seconds
        if remaining <= 0:
            raise self._timeout()
        process = self._start(arguments, offline)
        _running.add(process)
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            _kill_group(process)

        timer = threading.Timer(remaining, expire)
        timer.start()
        errors = _Drain(process.stderr)
        feeder = _Feed(process.stdin, stdin)
        try:
            assert process.stdout is not None  # noqa: S101
            yield process.stdout
            process.stdout.read()
            process.wait()
        finally:
            timer.cancel()
            # Helpers such as git-remote-https and ssh may outlive git: the whole group goes.
            _kill_group(process)
            process.wait()
            _running.discard(process)
            feeder.join(_JOIN_SECONDS)
            errors.join(_JOIN_SECONDS)
            if process.stdout is not None:
                process.stdout.close()
        if expired.is_set():
            raise self._timeout()
        if process.returncode != 0:
            raise self._failure(arguments, errors.text)

    def _start(self, arguments: Sequence[str], offline: bool) -> subprocess.Popen[bytes]:
        command = ["git", f"--git-dir={self.git_dir}", *arguments]
        try:
            return subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment(offline),
                # A new session has no terminal: neither git nor ssh can ask anybody anything.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise SourceUnavailableError("git is not installed") from None

    def _environment(self, offline: bool) -> dict[str, str]:
        # git needs the machine's own environment: HOME, PATH, proxies, the ssh agent.
        inherited = os.environ  # noqa: TID251
        environment = {
            name: value
            for name, value in inherited.items()
            if not name.startswith("GIT_") or name.startswith(_KEPT_GIT_VARIABLES)
        }
        environment |= {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS_REQUIRE": "never",
            "GIT_ALLOW_PROTOCOL": "" if offline else self.url.allowed_protocols,
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GCM_INTERACTIVE": "never",
            "LC_ALL": "C",
        }
        environment.pop("SSH_ASKPASS", None)
        if self.url.scheme == "ssh" and not {"GIT_SSH", "GIT_SSH_COMMAND"} & environment.keys():
            environment["GIT_SSH_COMMAND"] = self._ssh_command(environment)
        if self._ca_bundle is not None:
            environment["GIT_SSL_CAINFO"] = str(self._ca_bundle)
        return _with_config(environment, (*_SAFE_CONFIG, *self.url.config))

    @staticmethod
    def _ssh_command(environment: Mapping[str, str]) -> str:
        configured = subprocess.run(
            ["git", "config", "--global", "--get", "core.sshCommand"],  # noqa: S607
            env=dict(environment),
            capture_output=True,
            check=False,
            timeout=10,
        )
        own = configured.stdout.decode("utf-8", "replace").strip()
        return own or "ssh -oBatchMode=yes -oConnectTimeout=20"

    def _failure(self, arguments: Sequence[str], stderr: str) -> SourceUnavailableError:
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        telling = [
            line for line in lines if line.startswith(("fatal:", "error:", "remote:", "ERROR:"))
        ]
        reason = "; ".join(telling or lines[-3:]) or "no reason given"
        text = mask(f"git {arguments[0]} failed for {self.url.url}: {reason}", self.url)
        return SourceUnavailableError(text[:_MAX_ERROR_CHARS])

    def _timeout(self) -> SourceUnavailableError:
        return SourceUnavailableError(f"git took too long for {mask(self.url.url, self.url)}")


class _Drain(threading.Thread):
    """Reads a stream to its end, so that its writer never waits; keeps the first part."""

    _KEPT_BYTES = 20_000

    def __init__(self, stream: IO[bytes] | None) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._kept = b""
        self.start()

    def run(self) -> None:
        if self._stream is None:
            return
        with self._stream:
            while block := self._stream.read(8192):
                self._kept = (self._kept + block)[: self._KEPT_BYTES]

    @property
    def text(self) -> str:
        """What was read, once joined."""
        return self._kept.decode("utf-8", "replace")


class _Feed(threading.Thread):
    """Writes input to a process while its output is read."""

    def __init__(self, stream: IO[bytes] | None, content: bytes) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._content = content
        self.start()

    def run(self) -> None:
        if self._stream is not None:
            with suppress(BrokenPipeError), self._stream:
                self._stream.write(self._content)


_running: set[subprocess.Popen[bytes]] = set()


@atexit.register
def _kill_running() -> None:
    """A program that ends in the middle of a fetch leaves no git behind."""
    for process in list(_running):
        _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _with_config(
    environment: Mapping[str, str], config: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Add git settings after those that the environment already carries."""
    count = environment.get("GIT_CONFIG_COUNT", "0")
    first = int(count) if count.isdecimal() else 0
    added = {"GIT_CONFIG_COUNT": str(first + len(config))}
    for number, (key, value) in enumerate(config, start=first):
        added[f"GIT_CONFIG_KEY_{number}"] = key
        added[f"GIT_CONFIG_VALUE_{number}"] = value
    return {**environment, **added}
