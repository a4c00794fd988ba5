"""The checkout of a git source: the files of one revision that the globs need, and no others.

No work tree is checked out: blobs are read from git and written as plain files, so that hooks,
filters, attributes, symlinks and submodules of a repository have nowhere to act.
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import SourceUnavailableError
from app.ingestion.files import SKIPPED_FILE, SourceTree
from app.ingestion.git_tree import BlobsRefusedError, GitRunner, RevisionFiles
from app.ingestion.git_url import is_full_sha, is_sha, mask
from app.models import Progress

_STATE_FILE = "state.json"
# Raised whenever the same revision would give other files on disk.
_TREE_VERSION = 1
# Each fetch adds a pack and nothing ever repacks: beyond this the repository is fetched anew.
_MAX_PACKS = 40


@dataclass(frozen=True, slots=True)
class RemoteRef:
    """A branch or tag on the server and the commit that it stands for."""

    name: str
    commit: str


def find_ref(git: GitRunner, ref: str) -> RemoteRef | None:
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
            return RemoteRef(name, commits.get(f"{name}^{{}}", commits[name]))
    return None


class GitCheckout:
    """A bare repository and, beside it, the files of one revision."""

    def __init__(
        self, git: GitRunner, checkout: Path, include: Sequence[str], progress: Progress | None
    ) -> None:
        """Name the folder that holds the repository and the files; nothing is read yet."""
        self._git = git
        self._folder = checkout
        self._root = checkout / "tree"
        self._include = tuple(include)
        self._progress = progress or _no_progress

    def update(self, ref: str) -> SourceTree:
        """Bring the files to the revision that `ref` has on the server."""
        self._progress("fetch", 0, 1)
        found = None if is_full_sha(ref) else find_ref(self._git, ref)
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

    def _fetch_and_write(self, ref: str, found: RemoteRef | None) -> SourceTree:
        if self._is_usable():
            try:
                return self._write(*self._fetch(ref, found))
            except SourceUnavailableError:
                if self._git.remaining_seconds <= 0:
                    raise
                # Damaged by a crash, or its server changed: all that was fetched is replaceable.
        self._create()
        try:
            return self._write(*self._fetch(ref, found))
        except BlobsRefusedError:
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
        self, ref: str, found: RemoteRef | None, *, everything: bool = False
    ) -> tuple[str, str]:
        """Fetch one commit; returns it with its date."""
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
        """Write the files of a commit beside those on disk, then swap the folders."""
        fresh, old = self._folder / "tree.new", self._folder / "tree.old"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
        fresh.mkdir(parents=True)
        skipped = RevisionFiles(self._git, self._include, self._progress).write(commit, fresh)
        # Without a state the next run writes the files again: a crash from here on is mended.
        (self._folder / _STATE_FILE).unlink(missing_ok=True)
        if self._root.exists():
            self._root.rename(old)
        fresh.rename(self._root)
        shutil.rmtree(old, ignore_errors=True)
        rows = [[item.path, item.reason] for item in skipped]
        _write_json(self._folder / SKIPPED_FILE, rows)
        _write_json(self._folder / _STATE_FILE, self._state(commit, date))
        return SourceTree(self._root, "git", commit, date)

    def _current(self, commit: str) -> SourceTree | None:
        """Return the files on disk if they are those of a commit already."""
        try:
            state = json.loads((self._folder / _STATE_FILE).read_text(encoding="utf-8"))
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


def _write_json(path: Path, content: object) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(path)


def _no_progress(stage: str, done: int, total: int) -> None:
    """Take a report and do nothing."""
