"""Snapshots on disk: written beside, flushed, renamed, then named by `current`.

    <set>/snapshots/<fingerprint>/   the files of one snapshot
    <set>/current                    the fingerprint of the one in use

A crash between any two writes leaves the last good snapshot in place.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from app.errors import SnapshotError
from app.index.arrays import load_json
from app.index.snapshot import Manifest, SearchIndex

_PARTIAL = ".partial-"


def publish(index: SearchIndex, set_dir: Path) -> Path:
    """Save `index` under `set_dir` and make it the current snapshot; returns its folder.

    The caller holds the document set's build lock.

    Raises:
        OSError: The folder cannot be written; the current snapshot is untouched.
    """
    snapshots = set_dir / "snapshots"
    snapshots.mkdir(parents=True, exist_ok=True)
    target = snapshots / index.manifest.fingerprint
    partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=snapshots))
    try:
        index.save(partial)
        partial.chmod(0o755)
        _flush(partial)
        if target.exists():
            _replace_folder(partial, target)
        else:
            partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _flush_folder(snapshots)
    _name_current(set_dir, target.name)
    return target


def newest_snapshot(*set_dirs: Path) -> Path | None:
    """Return the newest snapshot that this version reads, among what each folder calls current.

    Where `current` is missing or names a snapshot of another format, the folder's newest readable
    one counts. The age is that of the source's revision, then of the build.
    """
    found: list[tuple[tuple[str, str], Path]] = []
    for set_dir in set_dirs:
        candidates = list(_readable(set_dir))
        current = current_snapshot(set_dir)
        named = [candidate for candidate in candidates if candidate[1] == current]
        found.extend(named or candidates)
    return max(found, key=lambda item: item[0], default=(None, None))[1]


def readable_snapshots(*set_dirs: Path) -> list[Path]:
    """Return every snapshot that this version reads, newest first, whatever `current` names."""
    found = [candidate for set_dir in set_dirs for candidate in _readable(set_dir)]
    return [folder for _, folder in sorted(found, key=lambda item: item[0], reverse=True)]


def current_snapshot(set_dir: Path) -> Path | None:
    """Return the folder that `current` names, whether or not it can be read."""
    try:
        name = (set_dir / "current").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    # The name comes from a file: it may only ever be one folder below snapshots.
    return set_dir / "snapshots" / name if name and Path(name).name == name else None


def unreadable_snapshots(set_dir: Path) -> dict[str, str]:
    """Return why each snapshot below `set_dir` cannot be read, by its folder's name."""
    reasons = {}
    for folder in _folders(set_dir):
        try:
            _manifest(folder)
        except SnapshotError as error:
            reasons[folder.name] = str(error)
    return reasons


def prune(set_dir: Path, keep: int = 2) -> None:
    """Remove all but the current snapshot and the `keep - 1` newest others, and dead partials.

    Processes that still have a removed snapshot mapped go on reading it.
    """
    snapshots = set_dir / "snapshots"
    current = current_snapshot(set_dir)
    others = sorted(
        (folder for folder in _folders(set_dir) if folder != current),
        key=lambda folder: folder.stat().st_mtime,
        reverse=True,
    )
    dead = [*others[max(keep - 1, 0) :], *snapshots.glob(f"{_PARTIAL}*")]
    for folder in dead:
        shutil.rmtree(folder, ignore_errors=True)


def _folders(set_dir: Path) -> Iterator[Path]:
    try:
        folders = sorted((set_dir / "snapshots").iterdir())
    except OSError:
        return
    for folder in folders:
        if folder.is_dir() and not folder.name.startswith("."):
            yield folder


def _readable(set_dir: Path) -> Iterator[tuple[tuple[str, str], Path]]:
    for folder in _folders(set_dir):
        try:
            manifest = _manifest(folder)
        except SnapshotError:
            continue
        yield (manifest.rev_date or manifest.built_at, manifest.built_at), folder


def _manifest(folder: Path) -> Manifest:
    return Manifest.from_json(load_json(folder / "manifest.json"))


def _replace_folder(partial: Path, target: Path) -> None:
    """Swap a folder for one of the same name; readers of the old one keep their mapped files."""
    old = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=target.parent)) / "old"
    target.rename(old)
    partial.rename(target)
    shutil.rmtree(old.parent, ignore_errors=True)


def _flush(folder: Path) -> None:
    for file in folder.iterdir():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    _flush_folder(folder)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name_current(set_dir: Path, name: str) -> None:
    beside = set_dir / f".current-{os.getpid()}"
    with beside.open("w", encoding="utf-8") as target:
        target.write(name + "\n")
        target.flush()
        os.fsync(target.fileno())
    beside.replace(set_dir / "current")
    _flush_folder(set_dir)
