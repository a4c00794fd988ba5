"""The files of one revision in a fetched git repository: which blobs they are, and writing them."""

import errno
import posixpath
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from app.errors import SourceUnavailableError
from app.ingestion.files import LINK_LEAVES_SOURCE, MAX_FILE_BYTES, SUBMODULE, TOO_LARGE, PathFilter
from app.ingestion.git_url import GitUrl
from app.models import Progress, Skipped

_REGULAR_MODES = frozenset({"100644", "100755", "100664"})
_LINK_MODE = "120000"
_SUBMODULE_MODE = "160000"


class GitRunner(Protocol):
    """Runs git for one source; every failure is a SourceUnavailableError without secrets."""

    url: GitUrl
    git_dir: Path

    @property
    def remaining_seconds(self) -> float:
        """The time left until the deadline of the whole fetch."""

    def run(self, *arguments: str, stdin: bytes = b"", offline: bool = False) -> bytes:
        """Run one git command in the repository and return its output."""

    def stream(
        self, *arguments: str, stdin: bytes = b"", offline: bool = False
    ) -> AbstractContextManager[IO[bytes]]:
        """Run one git command and give its output to read while it runs."""


class BlobsRefusedError(SourceUnavailableError):
    """The server gives no single blobs."""


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


class RevisionFiles:
    """Takes the files that globs select out of one commit."""

    def __init__(self, git: GitRunner, include: Sequence[str], progress: Progress) -> None:
        """Take the repository to read from and the globs."""
        self._git = git
        self._include = include
        self._progress = progress

    def write(self, commit: str, folder: Path) -> list[Skipped]:
        """Write the files of a commit below an empty folder; returns what is left out and why.

        Raises:
            BlobsRefusedError: The repository lacks blobs, and the server does not give them.
            SourceUnavailableError: git failed.
        """
        plan = self._plan(commit)
        self._write_files(plan, folder)
        return plan.skipped

    def _plan(self, commit: str) -> _Plan:
        entries = list(self._entries(commit))
        paths = PathFilter(self._include)
        plan = _Plan({}, [])
        links = []
        for entry in entries:
            if entry.mode == _SUBMODULE_MODE:
                plan.skipped.append(Skipped(_shown(entry.path), SUBMODULE))
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
            raise BlobsRefusedError(str(error)) from error
        if len(self._sizes(set(missing))) < len(missing):
            raise BlobsRefusedError("the server sent fewer files than its revision names")

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
                except OSError as error:
                    # A tree may nest deeper than a path can be long; a full disk ends it all.
                    if error.errno != errno.ENAMETOOLONG:
                        raise
                    plan.skipped.append(Skipped(path, "its path is too long"))
                done += 1
                self._progress("fetch", done, len(plan.files))


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
