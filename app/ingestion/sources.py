"""Sources: a local folder in place, or a git repository of which only the needed files are taken.

No work tree is checked out: blobs are read from git and written as plain files, so that hooks,
filters, attributes, symlinks and submodules of a repository have nowhere to act.
"""

import hashlib
import json
import os
import posixpath
import shutil
import signal
import subprocess
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.errors import SourceUnavailableError
from app.ingestion.files import (
    LINK_LEAVES_SOURCE,
    MAX_FILE_BYTES,
    SKIPPED_FILE,
    TOO_LARGE,
    FileListing,
    PathFilter,
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
    is_sha,
    mask,
    parse_git_url,
)
from app.ingestion.globs import check_glob, path_matcher
from app.models import Progress, Skipped

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

# Raised whenever the same revision would give other files on disk.
_TREE_VERSION = 1
# Each fetch adds a pack and nothing ever repacks: beyond this the repository is fetched anew.
_MAX_PACKS = 40
_MAX_ERROR_CHARS = 400

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
_REGULAR_MODES = frozenset({"100644", "100755", "100664"})
_LINK_MODE = "120000"
_SUBMODULE_MODE = "160000"


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
        return _GitCheckout(git, checkout, include, progress).update(ref)
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
        found = _find_ref(git, ref)
    except SourceUnavailableError:
        return None
    return found.commit if found else None


def _local_tree(source: str) -> SourceTree:
    root = Path(source).expanduser()
    try:
        if not root.is_dir():
            raise SourceUnavailableError(f"{source} is not a folder")
        root = root.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise SourceUnavailableError(f"{source} cannot be read: {error}") from None
    return SourceTree(root, "file", _head_of_work_tree(root), None)


def _head_of_work_tree(root: Path) -> str | None:
    """Return HEAD of the work tree that a folder lies in, from git's files, without running git."""
    for folder in (root, *root.parents):
        with suppress(OSError, ValueError):
            if (git_dir := _git_dir(folder / ".git")) is not None:
                return _read_head(git_dir)
    return None


def _git_dir(path: Path) -> Path | None:
    if path.is_dir():
        return path
    if path.is_file():
        return path.parent / path.read_text(encoding="utf-8").removeprefix("gitdir: ").strip()
    return None


def _read_head(git_dir: Path) -> str | None:
    head = (git_dir / "HEAD").read_text(encoding="utf-8").strip()
    if is_full_sha(head):
        return head
    name = head.removeprefix("ref: ")
    common = git_dir / "commondir"
    shared = git_dir / common.read_text(encoding="utf-8").strip() if common.is_file() else git_dir
    loose = shared / name
    if loose.is_file():
        commit = loose.read_text(encoding="utf-8").strip()
        return commit if is_full_sha(commit) else None
    packed = (shared / "packed-refs").read_text(encoding="utf-8")
    lines = (line.split(" ", 1) for line in packed.splitlines() if " " in line)
    return next((commit for commit, ref in lines if ref == name and is_full_sha(commit)), None)


class _Git:
    """Runs git for one source until a deadline, without prompts; errors carry no secret."""

    def __init__(self, url: GitUrl, git_dir: Path, deadline: float, ca_bundle: Path | None) -> None:
        self.url = url
        self.git_dir = git_dir
        self._deadline = deadline
        self._ca_bundle = ca_bundle

    def run(self, *arguments: str, stdin: bytes = b"", offline: bool = False) -> bytes:
        """Run one git command in the repository and return its output."""
        with self.stream(*arguments, stdin=stdin, offline=offline) as output:
            return output.read()

    @contextmanager
    def stream(
        self, *arguments: str, stdin: bytes = b"", offline: bool = False
    ) -> Iterator[IO[bytes]]:
        """Run one git command and give its output to read while it runs."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise self._timeout()
        process = self._start(arguments, offline)
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
            feeder.join()
            errors.join()
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


@dataclass(frozen=True, slots=True)
class _RemoteRef:
    name: str
    commit: str


def _find_ref(git: _Git, ref: str) -> _RemoteRef | None:
    """Look a branch or tag up on the server; None when it has none of that name."""
    names = (
        [ref]
        if ref == "HEAD" or ref.startswith("refs/")
        else [f"refs/heads/{ref}", f"refs/tags/{ref}"]
    )
    patterns = [*names, *(f"{name}^{{}}" for name in names)]
    output = git.run("ls-remote", "--", git.url.url, *patterns).decode("utf-8", "replace")
    rows = (line.split("\t", 1) for line in output.splitlines() if "\t" in line)
    commits = {name: commit for commit, name in rows}
    for name in names:
        if name in commits:
            # An annotated tag names a tag object; ^{} is the commit behind it.
            return _RemoteRef(name, commits.get(f"{name}^{{}}", commits[name]))
    return None


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    oid: str
    path: str  # NFC


@dataclass(slots=True)
class _Plan:
    """Which blob becomes which file, and what is skipped why."""

    files: dict[str, str]
    skipped: list[Skipped]


class _GitCheckout:
    """A bare repository and, beside it, the files of one revision."""

    def __init__(
        self, git: _Git, checkout: Path, include: Sequence[str], progress: Progress | None
    ) -> None:
        self._git = git
        self._folder = checkout
        self._root = checkout / "tree"
        self._include = tuple(include)
        self._progress = progress or _no_progress

    def update(self, ref: str) -> SourceTree:
        """Bring the files to the revision that `ref` has on the server."""
        self._progress("fetch", 0, 1)
        found = None if is_full_sha(ref) else _find_ref(self._git, ref)
        commit = found.commit if found else ref
        if found is None and not is_sha(ref):
            raise SourceUnavailableError(self._unknown_ref(ref))
        if (current := self._current(commit)) is None:
            current = self._fetch_and_write(ref, found)
        self._progress("fetch", 1, 1)
        return current

    def _unknown_ref(self, ref: str) -> str:
        shown = mask(self._git.url.url, self._git.url)
        head = self._git.run("ls-remote", "--symref", "--", self._git.url.url, "HEAD")
        branch = head.decode("utf-8", "replace").partition("ref: refs/heads/")[2].partition("\t")[0]
        hint = f"; its default branch is '{branch}'" if branch else ""
        return f"{shown} has no branch, tag or commit '{ref}'{hint}"

    def _fetch_and_write(self, ref: str, found: _RemoteRef | None) -> SourceTree:
        if self._is_usable():
            try:
                return self._write(*self._fetch(ref, found))
            except SourceUnavailableError:
                # Damaged by a crash, or odd after a force-push: what is fetched can be replaced.
                pass
        self._create()
        try:
            return self._write(*self._fetch(ref, found))
        except _BlobsRefusedError:
            self._create()
            return self._write(*self._fetch(ref, found, everything=True))

    def _is_usable(self) -> bool:
        packs = list((self._git.git_dir / "objects" / "pack").glob("*.pack"))
        return (self._git.git_dir / "HEAD").is_file() and len(packs) <= _MAX_PACKS

    def _create(self) -> None:
        shutil.rmtree(self._git.git_dir, ignore_errors=True)
        self._git.git_dir.mkdir(parents=True, exist_ok=True)
        self._git.run("init", "--quiet", "--bare", "--template=")
        self._git.run("config", "remote.origin.url", self._git.url.url)

    def _fetch(
        self, ref: str, found: _RemoteRef | None, *, everything: bool = False
    ) -> tuple[str, str]:
        """Fetch one commit; returns it with its date."""
        # A branch stands for what it is now: its own URL is renewed too, for a changed scheme.
        self._git.run("config", "remote.origin.url", self._git.url.url)
        narrow = () if everything else ("--filter=blob:none",)
        try:
            if found is None and not is_full_sha(ref):
                raise SourceUnavailableError("a short hash can only be found in the whole history")
            self._fetch_refs(
                "--depth=1", *narrow, f"+{found.name if found else ref}:refs/docs/head"
            )
            name = "refs/docs/head"
        except SourceUnavailableError:
            if found is not None:
                raise
            # The server gives no single commits by hash, or the hash is short: all of history,
            # still without blobs.
            self._fetch_refs(
                *narrow, "+refs/heads/*:refs/docs/heads/*", "+refs/tags/*:refs/docs/tags/*"
            )
            name = ref
        commit = self._git.run(
            "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}", offline=True
        )
        date = self._git.run(
            "show", "--no-patch", "--format=%cI", commit.decode().strip(), offline=True
        )
        return commit.decode().strip(), date.decode().strip()

    def _fetch_refs(self, *arguments: str) -> None:
        options = ["--quiet", "--no-tags", "--force", "--no-recurse-submodules"]
        if "--depth=1" not in arguments and (self._git.git_dir / "shallow").is_file():
            options.append("--unshallow")
        names = [argument for argument in arguments if not argument.startswith("--")]
        flags = [argument for argument in arguments if argument.startswith("--")]
        self._git.run("fetch", *options, "--no-auto-maintenance", *flags, "origin", *names)

    def _write(self, commit: str, date: str) -> SourceTree:
        plan = self._plan(commit)
        fresh = self._folder / "tree.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        self._write_files(plan, fresh)
        (self._folder / "state.json").unlink(missing_ok=True)
        old = self._folder / "tree.old"
        shutil.rmtree(old, ignore_errors=True)
        if self._root.exists():
            self._root.rename(old)
        fresh.rename(self._root)
        shutil.rmtree(old, ignore_errors=True)
        rows = [[item.path, item.reason] for item in plan.skipped]
        _write_json(self._folder / SKIPPED_FILE, rows)
        _write_json(self._folder / "state.json", self._state(commit, date))
        return SourceTree(self._root, "git", commit, date)

    def _current(self, commit: str) -> SourceTree | None:
        """Return the files on disk if they are those of a commit already."""
        try:
            state = json.loads((self._folder / "state.json").read_text(encoding="utf-8"))
            if state != self._state(commit, state["date"]) or not self._root.is_dir():
                return None
            return SourceTree(self._root, "git", commit, state["date"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _state(self, commit: str, date: str) -> dict[str, object]:
        source = hashlib.sha256(self._git.url.url.encode()).hexdigest()
        return {
            "version": _TREE_VERSION,
            "source": source,
            "rev": commit,
            "date": date,
            "include": list(self._include),
        }

    def _plan(self, commit: str) -> _Plan:
        entries = list(self._entries(commit))
        paths = PathFilter(self._include)
        plan = _Plan({}, [])
        links = []
        for entry in entries:
            if entry.mode == _SUBMODULE_MODE:
                plan.skipped.append(Skipped(entry.path, "submodule"))
            elif not paths.takes(entry.path):
                continue
            elif not _is_safe(entry.path):
                plan.skipped.append(Skipped(_shown(entry.path), "unsafe file name"))
            elif entry.mode == _LINK_MODE:
                links.append(entry)
            elif entry.mode not in _REGULAR_MODES:
                plan.skipped.append(Skipped(entry.path, "not a regular file"))
            elif entry.path in plan.files:
                plan.skipped.append(
                    Skipped(entry.path, "another file has the same name in Unicode NFC")
                )
            else:
                plan.files[entry.path] = entry.oid
        self._follow_links(links, entries, plan)
        self._drop_large(plan)
        return plan

    def _entries(self, commit: str) -> Iterator[_Entry]:
        listing = self._git.run("ls-tree", "-r", "-z", "--full-tree", commit, offline=True)
        for row in listing.split(b"\0"):
            if row:
                head, _, name = row.partition(b"\t")
                mode, _, oid = head.decode("ascii").split(" ")
                path = unicodedata.normalize("NFC", name.decode("utf-8", "surrogateescape"))
                yield _Entry(mode, oid, path)

    def _follow_links(
        self, links: Sequence[_Entry], entries: Sequence[_Entry], plan: _Plan
    ) -> None:
        """A link to a file of the same revision stands for that file; others are skipped."""
        regular = {entry.path: entry.oid for entry in entries if entry.mode in _REGULAR_MODES}
        self._fetch_missing({link.oid for link in links})
        targets = dict(self._blobs([link.oid for link in links]))
        for link in links:
            target = targets[link.oid].decode("utf-8", "surrogateescape")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), target))
            if path.startswith(("/", "../")) or path == "..":
                plan.skipped.append(Skipped(link.path, LINK_LEAVES_SOURCE))
            elif (oid := regular.get(unicodedata.normalize("NFC", path))) is None:
                plan.skipped.append(Skipped(link.path, "symbolic link to no file"))
            else:
                plan.files[link.path] = oid

    def _drop_large(self, plan: _Plan) -> None:
        self._fetch_missing(set(plan.files.values()))
        sizes = self._sizes(set(plan.files.values()))
        for path, oid in list(plan.files.items()):
            if sizes[oid] > MAX_FILE_BYTES:
                plan.skipped.append(Skipped(path, TOO_LARGE))
                del plan.files[path]

    def _fetch_missing(self, oids: set[str]) -> None:
        """Fetch the blobs that a filtered fetch left out, all at once."""
        present = self._sizes(oids)
        missing = sorted(oids - present.keys())
        if not missing:
            return
        try:
            self._git.run(
                *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"),
                *("--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance"),
                *("--filter=blob:none", "--stdin", "origin"),
                stdin="".join(f"{oid}\n" for oid in missing).encode("ascii"),
            )
        except SourceUnavailableError as error:
            raise _BlobsRefusedError(str(error)) from error
        if len(self._sizes(set(missing))) < len(missing):
            raise _BlobsRefusedError("the server sent fewer files than its revision names")

    def _sizes(self, oids: set[str]) -> dict[str, int]:
        """Return the sizes of those blobs that are here already.

        All objects are listed, since asking for one that is not here would make git fetch it.
        """
        if not oids:
            return {}
        sizes: dict[str, int] = {}
        with self._git.stream(
            *("cat-file", "--batch-all-objects", "--unordered", "--buffer"),
            "--batch-check=%(objectname) %(objectsize)",
            offline=True,
        ) as output:
            for line in output:
                oid, _, size = line.decode("ascii").partition(" ")
                if oid in oids:
                    sizes[oid] = int(size)
        return sizes

    def _blobs(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield each blob once, read from one git process."""
        unique = sorted(set(oids))
        if not unique:
            return
        with self._git.stream(
            "cat-file", "--batch", "--buffer", stdin=_lines(unique), offline=True
        ) as output:
            for oid in unique:
                header = output.readline().split(b" ")
                if len(header) != 3:
                    raise SourceUnavailableError("the fetched repository is damaged")
                size = int(header[2])
                content = output.read(size + 1)
                if len(content) != size + 1:
                    raise SourceUnavailableError("the fetched repository is damaged")
                yield oid, content[:-1]

    def _write_files(self, plan: _Plan, folder: Path) -> None:
        paths_of: dict[str, list[str]] = {}
        for path, oid in plan.files.items():
            paths_of.setdefault(oid, []).append(path)
        done = 0
        for oid, content in self._blobs(list(paths_of)):
            for path in paths_of[oid]:
                try:
                    file = folder / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
                except (FileExistsError, NotADirectoryError, IsADirectoryError):
                    plan.skipped.append(Skipped(path, "a file and a folder have the same name"))
                done += 1
                self._progress("fetch", done, len(plan.files))


class _BlobsRefusedError(SourceUnavailableError):
    """The server gives no single blobs."""


def _is_safe(path: str) -> bool:
    """Tell a path that stays where it is written from one that a hostile tree may hold."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    parts = path.split("/")
    is_plain = all(part not in ("", ".", "..") and part.lower() != ".git" for part in parts)
    return is_plain and "\\" not in path and all(len(part.encode()) <= 255 for part in parts)


def _lines(oids: Iterable[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode("ascii")


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def _write_json(path: Path, content: object) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(path)


def _no_progress(stage: str, done: int, total: int) -> None:
    """Take a report and do nothing."""
