"""One document set as this process serves it: its index, its snapshots and its builds.

Everything here is synchronous and runs in worker threads. Readers take `index` once: a build, or
the snapshot of another process, replaces the reference and never the index.
"""

import hashlib
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from app.errors import SnapshotError, SourceUnavailableError
from app.index.publication import newest_snapshot, readable_snapshots, unreadable_snapshots
from app.index.snapshot import SearchIndex
from app.ingestion.ingest import build_snapshot, ingest
from app.ingestion.sources import (
    SourceTree,
    display_source,
    is_git_source,
    list_files,
    stat_fingerprint,
)
from app.library.config import SetOptions
from app.library.status import IndexBlock, SetState, SetStatus, revision
from app.models import DocumentSetSpec, Progress

logger = logging.getLogger(__name__)

LOCK_TIMEOUT_SECONDS = 900.0
"""How long a build waits for the build of another process before it gives up."""

CLOCK_SKEW = timedelta(minutes=1)
"""How far the clocks of machines that share a data folder may be apart."""

Outcome = Literal["refreshed", "adopted", "unchanged"]
"""Of a build: a new index, that of another process, or the one of before."""

_NOT_SHAPING = frozenset({"desc"})
_OF_THE_PROGRAM = frozenset({"source", "ref", "questions"})

CONFIG_CHANGED = "the config of this set has changed since its index was built"


class DocumentSet:
    """A document set with the index that answers for it now.

    `starter_dir` holds pages that stand in until the set has a snapshot of its own. The index of
    a git source that was not compared with it for longer than `stale_after` counts as stale.
    """

    def __init__(
        self,
        options: SetOptions,
        *,
        data_dir: Path,
        image_dir: Path | None = None,
        starter_dir: Path | None = None,
        stale_after: timedelta | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        ca_bundle: Path | None = None,
    ) -> None:
        """Name the folders; nothing is read before `load`."""
        self._ca_bundle = ca_bundle
        self.options = options
        self.index: SearchIndex | None = None
        self.building = False
        self.last_error: str | None = None
        self.behind: str | None = None
        self.unavailable: str | None = None
        self._data_dir = data_dir
        self.set_dir = data_dir / "sets" / options.spec.id
        self._image_set_dir = image_dir / "sets" / options.spec.id if image_dir else None
        self._starter_dir = starter_dir
        self._starter_set_dir = data_dir / "starter" / options.spec.id
        self._stale_after = stale_after
        self._now = now
        self._checked_at: datetime | None = None
        self._swap = threading.Lock()
        self._seen_current: tuple[int, int] | None = None
        self._source_stat: str | None = None
        self._unchanged_stat: str | None = None
        self._built_from: str | None = None

    @property
    def spec(self) -> DocumentSetSpec:
        """The set as the operator wants it."""
        return self.options.spec

    @property
    def is_git(self) -> bool:
        """Whether the source is fetched by git, not read in place."""
        return is_git_source(self.spec.source)

    @property
    def has_own_index(self) -> bool:
        """Whether an index of the real source answers, not starter pages and not nothing."""
        return self.index is not None and not self.index.manifest.starter

    def load(self) -> None:
        """Take the newest readable snapshot, of the data folder or the image; else the starter."""
        self._note_current()
        self._note_checked()
        index = self._load_newest()
        if index is None:
            index = self._load_starter()
        elif (self.set_dir / "snapshots" / index.manifest.fingerprint).is_dir():
            self._built_from = self._read_marker()
        # Last, so that nobody sees an index without knowing what it was built from.
        self.index = index

    def adopt_newer(self) -> bool:
        """Take the current snapshot of the data folder if another process has published one."""
        self._note_checked()
        if not self._note_current():
            if self._is_configured_anew():
                # The other process names what it built from just after its snapshot.
                self._built_from = self._read_marker()
            return False
        with self._swap:
            folder = newest_snapshot(self.set_dir)
            if folder is None or self._is_loaded(folder):
                return False
            try:
                self.index = SearchIndex.load(folder)
            except (SnapshotError, OSError) as error:
                # Damaged, or pruned since: then `current` names its successor at the next look.
                logger.warning("set %s: snapshot not loaded: %s", self.spec.id, error)
                return False
            self.last_error = self.behind = None
            self._built_from = self._read_marker()
            return True

    def source_changed(self) -> bool:
        """Return whether a local source differs from its index, by path, time and size.

        Always false for a git source, where only a fetch can tell, and for a folder that cannot
        be read, which `unavailable` then explains.
        """
        if self.is_git:
            return False
        try:
            stat = self._stat_fingerprint()
        except SourceUnavailableError as error:
            self.unavailable = str(error)
            return False
        self.unavailable = None
        self._source_stat = stat
        if self.index is None or not self.has_own_index or self._is_configured_anew():
            return True
        if stat not in {self.index.manifest.stat_fingerprint, self._unchanged_stat}:
            return True
        self._checked_at = self._now()
        return False

    def build(
        self, progress: Progress | None = None, *, unless_done_since: datetime | None = None
    ) -> Outcome:
        """Fetch the source, build its index and serve it.

        One process builds at a time. With `unless_done_since` the work of another process that
        ended after that moment is taken instead, and so is a local source that has not changed.

        Raises:
            SourceUnavailableError: The source cannot be read: the old index stays.
            OSError: The data folder cannot be written: the old index stays.
        """
        self.set_dir.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.set_dir / "lock", timeout=LOCK_TIMEOUT_SECONDS)
        try:
            with lock:
                return self._build_locked(progress, unless_done_since)
        except Timeout as error:
            raise SourceUnavailableError(
                f"another process has been building this set for {LOCK_TIMEOUT_SECONDS:.0f} s"
            ) from error

    def _build_locked(
        self, progress: Progress | None, unless_done_since: datetime | None
    ) -> Outcome:
        adopted = self.adopt_newer()
        if unless_done_since is not None and self._is_done_since(unless_done_since):
            self.last_error = None
            return "adopted" if adopted else "unchanged"
        # Taken before the files are read: what is edited from here on counts as a new change.
        stat = self._source_stat if unless_done_since is not None else None
        if stat is None and not self.is_git:
            stat = self._stat_fingerprint()
        previous, spec = self.index if self.has_own_index else None, self.spec
        built = build_snapshot(
            spec, self.set_dir, previous=previous, progress=progress, ca_bundle=self._ca_bundle
        )
        with self._swap:
            self.index = built
            # Touched files of equal content: the next ask need not build again for them.
            self._unchanged_stat = stat if built is previous else None
            self.last_error = self.behind = self.unavailable = None
            self._built_from = self._shape(spec)
        self._done_marker.write_text(self._built_from, encoding="utf-8")
        self._note_checked()
        if built is not previous:
            return "refreshed"
        return "adopted" if adopted else "unchanged"

    def note_failure(self, reason: str) -> None:
        """Keep why the last refresh failed, without the folders of this machine."""
        self.last_error = f"the last refresh failed: {self._without_folders(reason)}"

    def status(self) -> SetStatus:
        """Describe the set as it is served now."""
        index, building = self.index, self.building
        state, reason = self._state(index, building)
        if index is None:
            return SetStatus(
                self.spec.id, state, reason, building, None, None, None, self.last_error, {}, 0
            )
        manifest = index.manifest
        built_at = datetime.fromisoformat(manifest.built_at)
        return SetStatus(
            id=self.spec.id,
            state=state,
            reason=reason,
            building=building,
            index=self._block(index, state),
            age_seconds=max((datetime.now(UTC) - built_at).total_seconds(), 0.0),
            checked_at=self._checked(index).isoformat(timespec="seconds"),
            last_error=self.last_error,
            languages=manifest.languages,
            pages=len(index.pages),
        )

    def _state(self, index: SearchIndex | None, building: bool) -> tuple[SetState, str | None]:
        if index is None or not len(index):
            return SetState.EMPTY, self._why_empty(index, building)
        if index.manifest.starter:
            waiting = "being fetched" if building else "not fetched yet"
            reason = f"bundled starter pages answer: the documents of {self._shown_source} are"
            return SetState.STARTER, _joined(f"{reason} {waiting}", self.last_error)
        if building:
            return SetState.BUILDING, _joined("a new index is being built", self.last_error)
        behind = self.behind or (CONFIG_CHANGED if self._is_configured_anew() else None)
        unchecked = self._why_unchecked(index)
        if behind or unchecked or self.unavailable or self.last_error:
            return SetState.STALE, _joined(behind, unchecked, self.unavailable, self.last_error)
        return SetState.FRESH, None

    def _why_unchecked(self, index: SearchIndex) -> str | None:
        """Say that nobody has looked for too long; a local source is looked at with each ask."""
        if self._stale_after is None or not self.is_git:
            return None
        age = self._now() - self._checked(index)
        if age <= self._stale_after:
            return None
        return f"this index was last compared with its source {_spoken(age)} ago"

    def _why_empty(self, index: SearchIndex | None, building: bool) -> str:
        if building:
            return "the first index is being built"
        if self.last_error or self.unavailable:
            return _joined(self.unavailable, self.last_error)
        if index is not None:
            return f"no file could be indexed ({len(index.manifest.skipped)} skipped)"
        return "no index has been built yet"

    def _block(self, index: SearchIndex, state: SetState) -> IndexBlock:
        manifest = index.manifest
        return IndexBlock(
            origin=manifest.origin,
            root=manifest.root,
            source=manifest.source,
            rev=revision(manifest),
            rev_date=manifest.rev_date,
            files=manifest.files,
            chunks=manifest.chunks,
            layers=manifest.layers,
            state=state,
            built_at=manifest.built_at,
            skipped=manifest.skipped,
        )

    def _without_folders(self, reason: str) -> str:
        # Reasons are shown to callers over HTTP, who need not know where things lie.
        named = {str(self.set_dir): "the data folder", str(self._data_dir): "the data folder"}
        if not self.is_git:
            named[self.spec.source] = "the source folder"
        elif self.spec.source.startswith("file://"):
            named |= {self.spec.source: "the source", urlsplit(self.spec.source).path: "the source"}
        for folder, name in named.items():
            reason = reason.replace(folder, name)
        return reason

    @property
    def _shown_source(self) -> str:
        return self._without_folders(display_source(self.spec.source))

    def _checked(self, index: SearchIndex) -> datetime:
        built_at = datetime.fromisoformat(index.manifest.built_at)
        if self._checked_at is None or index.manifest.starter:
            return built_at
        return max(built_at, self._checked_at)

    def _note_checked(self) -> None:
        """Look when a refresh last ended well, in this process or in another."""
        with suppress(OSError):
            done_at = datetime.fromtimestamp(self._done_marker.stat().st_mtime, UTC)
            self._checked_at = max(done_at, self._checked_at or done_at)

    @property
    def _done_marker(self) -> Path:
        return self.set_dir / "refreshed"

    def _is_done_since(self, moment: datetime) -> bool:
        if not self.has_own_index:
            return False
        if not self.is_git:
            return not self.source_changed() and self.unavailable is None
        if self._is_configured_anew():
            return False
        try:
            done = self._done_marker.stat().st_mtime
        except OSError:
            return False
        # A time to come is from before the clock was set back, and says nothing.
        latest = datetime.now(UTC) + CLOCK_SKEW
        return moment.timestamp() <= done <= latest.timestamp()

    def _stat_fingerprint(self) -> str:
        root = Path(self.spec.source).resolve()
        if not root.is_dir():
            raise SourceUnavailableError("the source folder does not exist")
        tree = SourceTree(root=root, origin="file", rev=None, rev_date=None)
        return stat_fingerprint(list_files(tree, self.spec.include, self.spec.exclude))

    def _is_configured_anew(self) -> bool:
        """Return whether the index was built for other globs, layers or a source of before."""
        return self._built_from is not None and self._built_from != self._shape(self.spec)

    def _shape(self, spec: DocumentSetSpec) -> str:
        """Identify what of the config decides the documents; a description does not.

        Nobody configures the source of a set with starter pages: `sync --source` may build it
        from anywhere, and its questions come with the program.
        """
        built_in = self._starter_dir is not None
        return _digest(spec, _NOT_SHAPING | (_OF_THE_PROGRAM if built_in else frozenset()))

    def _read_marker(self) -> str | None:
        try:
            return self._done_marker.read_text(encoding="utf-8") or None
        except (OSError, UnicodeDecodeError):
            return None

    def _is_loaded(self, folder: Path) -> bool:
        return self.index is not None and self.index.manifest.fingerprint == folder.name

    def _note_current(self) -> bool:
        """Look whether `current` was replaced since the last look."""
        try:
            stat = (self.set_dir / "current").stat()
        except OSError:
            return False
        seen = (stat.st_ino, stat.st_mtime_ns)
        changed, self._seen_current = seen != self._seen_current, seen
        return changed

    def _load_newest(self) -> SearchIndex | None:
        set_dirs = [self.set_dir]
        if self._image_set_dir is not None:
            set_dirs.append(self._image_set_dir)
        # A damaged one must not hide an older good one, of the same folder or of the other.
        for folder in dict.fromkeys([newest_snapshot(*set_dirs), *readable_snapshots(*set_dirs)]):
            if folder is None:
                continue
            try:
                return SearchIndex.load(folder)
            except (SnapshotError, OSError) as error:
                reason = self._without_folders(str(error))
                self.last_error = f"snapshot {folder.name[:12]} cannot be read: {reason}"
                logger.warning("set %s: %s", self.spec.id, self.last_error)
        for set_dir in set_dirs:
            for name, reason in unreadable_snapshots(set_dir).items():
                self.last_error = f"snapshot {name[:12]} is rebuilt: {reason}"
        return None

    def _load_starter(self) -> SearchIndex | None:
        """Index the starter pages, cached in the data folder where that can be written."""
        if self._starter_dir is None:
            return None
        spec = replace(self.spec, source=str(self._starter_dir), include=("**/*.md",), exclude=())
        with suppress(OSError, Timeout):
            self._starter_set_dir.mkdir(parents=True, exist_ok=True)
            with FileLock(self._starter_set_dir / "lock", timeout=30):
                return build_snapshot(
                    spec, self._starter_set_dir, previous=self._cached_starter(), starter=True
                )
        # The data folder cannot be written: the pages are few enough to index at each start.
        return ingest(spec, self._starter_set_dir / "checkout", starter=True)

    def _cached_starter(self) -> SearchIndex | None:
        folder = newest_snapshot(self._starter_set_dir)
        if folder is None:
            return None
        try:
            return SearchIndex.load(folder)
        except (SnapshotError, OSError):
            return None


def _joined(*reasons: str | None) -> str:
    return "; ".join(reason for reason in reasons if reason)


def _spoken(age: timedelta) -> str:
    hours = int(age.total_seconds() // 3600)
    return f"{age.days} days" if age.days > 1 else f"{hours} hours" if hours > 1 else "an hour"


@lru_cache(maxsize=256)
def _digest(spec: DocumentSetSpec, aside: frozenset[str]) -> str:
    """Identify what of a set decides its documents, but for the fields in `aside`."""
    shaping = {name: value for name, value in asdict(spec).items() if name not in aside}
    return hashlib.sha256(repr(sorted(shaping.items())).encode()).hexdigest()
