"""The commit of a git work tree that an operator uses as a local folder, read without git."""

from contextlib import suppress
from pathlib import Path

from app.ingestion.git_url import is_full_sha


def head_of_work_tree(root: Path) -> str | None:
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
