"""The files of a source on disk: which belong to a document set, and their bytes."""

import hashlib
import json
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.errors import UnusableFileError
from app.ingestion.globs import folder_matcher, path_matcher
from app.models import Skipped

MAX_FILE_BYTES = 5_000_000
TOO_LARGE = f"larger than {MAX_FILE_BYTES // 1_000_000} MB"
LINK_LEAVES_SOURCE = "symbolic link that leaves the source"
SUBMODULE = "submodule"
LFS_POINTER = "git-lfs pointer, not the file itself"
# Beside the files of a git source: what of its tree could not become a file, and why.
SKIPPED_FILE = "skipped.json"

# Folders that hold no documentation of the project itself; a glob that names one still enters it.
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_LFS_FIRST_LINE = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A source as files under one folder, at a revision if it has one."""

    root: Path
    origin: Literal["git", "file"]
    rev: str | None
    rev_date: str | None


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source. `path` is relative to the root, POSIX-style and NFC."""

    path: str
    file: Path
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files that the globs select, sorted by path, and those of them that cannot be used."""

    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]


class PathFilter:
    """The globs of a document set, with the folders that are left out by default."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str] = ()) -> None:
        """Take globs relative to the source's root."""
        self._included = path_matcher(include)
        self._excluded = path_matcher(exclude)
        self._excluded_folder = folder_matcher(exclude)
        self._named = {segment for pattern in include for segment in pattern.split("/")}

    def takes(self, path: str) -> bool:
        """Tell whether a file belongs to the document set."""
        *folders, _ = path.split("/")
        if any(self._is_skipped_name(name) for name in folders):
            return False
        return self._included(path) and not self._excluded(path)

    def concerns(self, item: Skipped) -> bool:
        """Tell whether a skipped entry is worth a mention; a submodule has no files to match."""
        return item.reason == SUBMODULE or self.takes(item.path)

    def enters(self, folder: str) -> bool:
        """Tell whether files below a folder can belong to the document set."""
        name = folder.rpartition("/")[2]
        return not self._is_skipped_name(name) and not self._excluded_folder(folder)

    def _is_skipped_name(self, name: str) -> bool:
        is_hidden = name.startswith(".") or name in _SKIPPED_FOLDERS
        return is_hidden and name not in self._named


def list_files(
    tree: SourceTree, include: Sequence[str], exclude: Sequence[str] = ()
) -> FileListing:
    """List the files that the globs select; what cannot be used is named with its reason."""
    paths = PathFilter(include, exclude)
    files: dict[str, SourceFile] = {}
    skipped: list[Skipped] = []
    for found in _walk(tree.root, paths):
        if isinstance(found, Skipped):
            skipped.append(found)
        elif found.path in files:
            skipped.append(Skipped(found.path, "another file has the same name in Unicode NFC"))
        else:
            files[found.path] = found
    if tree.origin == "git":
        skipped += [item for item in _skipped_at_fetch(tree.root) if paths.concerns(item)]
    return FileListing(
        files=tuple(files[path] for path in sorted(files)),
        skipped=tuple(sorted(skipped, key=lambda item: (item.path, item.reason))),
    )


def stat_fingerprint(listing: FileListing) -> str:
    """Identify a listing by paths, sizes and modification times, without reading any file."""
    rows = [[file.path, file.size, file.mtime_ns] for file in listing.files]
    rows += [[item.path, item.reason] for item in listing.skipped]
    return hashlib.sha256(json.dumps(rows).encode("ascii")).hexdigest()[:32]


def read_file(file: SourceFile, tree: SourceTree) -> bytes:
    """Return the bytes of a listed file.

    Raises:
        UnusableFileError: It cannot be read, left the source, grew too large, or is a pointer.
    """
    try:
        real = file.file.resolve(strict=True)
        if not real.is_relative_to(tree.root.resolve()):
            raise UnusableFileError(LINK_LEAVES_SOURCE)
        # The listing may be old by now: never wait for a pipe that took the file's place.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnusableFileError("not a regular file")
            raw = opened.read(MAX_FILE_BYTES + 1)
    except (OSError, RuntimeError) as error:
        raise UnusableFileError(_unreadable(error)) from None
    if len(raw) > MAX_FILE_BYTES:
        raise UnusableFileError(TOO_LARGE)
    if raw.startswith(_LFS_FIRST_LINE) and len(raw) < 1024:
        raise UnusableFileError(LFS_POINTER)
    return raw


def _walk(root: Path, paths: PathFilter) -> Iterator[SourceFile | Skipped]:
    real_root = root.resolve()
    unreadable: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=unreadable.append):
        relative = Path(folder).relative_to(root)
        entered = []
        for name in sorted(folders):
            path = (relative / name).as_posix()
            if not paths.enters(unicodedata.normalize("NFC", path)):
                continue
            if (Path(folder) / name).is_symlink():
                yield Skipped(_shown(path), "symbolic link to a folder")
            else:
                entered.append(name)
        folders[:] = entered
        for name in names:
            path = unicodedata.normalize("NFC", (relative / name).as_posix())
            if paths.takes(path):
                yield _found(path, Path(folder) / name, real_root)
    for error in unreadable:
        path = Path(error.filename).relative_to(root).as_posix()
        yield Skipped(_shown(path), _unreadable(error))


def _found(path: str, file: Path, real_root: Path) -> SourceFile | Skipped:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return Skipped(_shown(path), "the file name is not UTF-8")
    try:
        if file.is_symlink() and not file.resolve(strict=True).is_relative_to(real_root):
            return Skipped(path, LINK_LEAVES_SOURCE)
        status = file.stat()
    except (OSError, RuntimeError) as error:
        return Skipped(path, _unreadable(error))
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "not a regular file")
    if status.st_size > MAX_FILE_BYTES:
        return Skipped(path, TOO_LARGE)
    return SourceFile(path, file, status.st_size, status.st_mtime_ns)


def _skipped_at_fetch(root: Path) -> list[Skipped]:
    try:
        rows = json.loads((root.parent / SKIPPED_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [Skipped(path, reason) for path, reason in rows]


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def _unreadable(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "link loop"
    return f"unreadable: {reason}"
