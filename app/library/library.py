"""DocumentLibrary: the document sets that this process serves, each with its current index.

A swap replaces one reference. Who answers takes one index at the start and uses it to the end.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from app.embeddings.registry import Encoders
from app.errors import ConfigError, DocumentSetNotFoundError, EmptySetError
from app.index.dense import DenseLeg
from app.index.snapshot import SearchIndex
from app.liara.corpus import LIARA_SET_ID
from app.library.config import DocsConfig, SetOptions, load_config
from app.library.document_set import CONFIG_CHANGED, DocumentSet
from app.library.refresh import RefreshJob, RefreshJobs, watch_folder
from app.library.status import LibraryEvent, OnEvent, SetState, SetStatus
from app.library.vectors import LibraryVectors, VectorStatus
from app.models import DocumentSetSpec, Progress

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""Other processes' snapshots and config edits are seen within this time."""

ASK_WAIT_SECONDS = 5.0
"""How long an ask waits for the rebuild of a local source that has changed."""

SOURCE_CHANGED = "the source has changed since this index was built"


@dataclass(frozen=True, slots=True)
class Answering:
    """The index that one answer uses from its start to its end, and what stands behind it."""

    index: SearchIndex
    state: SetState
    reason: str | None
    checked_at: str | None


class DocumentLibrary:
    """The document sets by id. Thread-safe to read; rebuilds belong to one event loop."""

    def __init__(
        self,
        specs: Sequence[DocumentSetSpec | SetOptions],
        *,
        data_dir: Path,
        image_dir: Path | None = None,
        starter_dir: Path | None = None,
        default_docs: str | None = None,
        config: DocsConfig | None = None,
        encoders: Encoders | None = None,
        ca_bundle: Path | None = None,
        sync_on_start: bool = True,
        ask_wait_seconds: float = ASK_WAIT_SECONDS,
        poll_seconds: float = POLL_SECONDS,
        stale_after: timedelta | None = None,
        on_event: OnEvent | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the built-in sets and the config's; nothing is read before `load`.

        Without `encoders` search is by words only, without `stale_after` age makes nothing stale.
        """
        self._data_dir = data_dir
        self._image_dir = image_dir
        self._ca_bundle = ca_bundle
        self._starter_dir = starter_dir
        self._built_in = tuple(
            item if isinstance(item, SetOptions) else SetOptions(item) for item in specs
        )
        self._named_default = default_docs
        self._sync_on_start = sync_on_start
        self._ask_wait_seconds = ask_wait_seconds
        self._poll_seconds = poll_seconds
        self._on_event: OnEvent = on_event or _ignore
        self._stale_after = stale_after
        self._now = now
        self._jobs = RefreshJobs(self._on_event, now)
        self._watchers: dict[str, tuple[str, asyncio.Task[None]]] = {}
        self._loaded = False
        self.config = config or DocsConfig()
        self.config_error: str | None = None
        self._config_stat = _stat(self.config.path)
        self.vectors: LibraryVectors | None = None
        if encoders is not None:
            self.vectors = LibraryVectors(
                encoders,
                data_dir=data_dir,
                image_dir=image_dir,
                default_model=lambda: self.config.embedding_model,
            )
        self._sets = {o.spec.id: self._new_set(o) for o in self._all_options(self.config)}

    def load(self) -> None:
        """Load the newest readable snapshot of each set, or the starter pages; synchronous."""
        for served in self._sets.values():
            served.load()
            if self.vectors is not None:
                self.vectors.look(served)
        self._loaded = True

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all sets: built-in ones first, then as the config orders them."""
        return tuple(self._sets)

    @property
    def default_docs(self) -> str | None:
        """The set that answers when none is named; None when there is no set at all."""
        chosen = self._named_default or self.config.default_docs
        return chosen if chosen in self._sets else next(iter(self._sets), None)

    @property
    def ready(self) -> bool:
        """Whether at least one set has an index to answer from."""
        return any(served.index is not None for served in self._sets.values())

    def options(self, set_id: str) -> SetOptions:
        """Return the resolved options of a set.

        Raises:
            DocumentSetNotFoundError: No such set.
        """
        return self._set(set_id).options

    def spec(self, set_id: str) -> DocumentSetSpec:
        """Return what the operator wants served under this id.

        Raises:
            DocumentSetNotFoundError: No such set.
        """
        return self._set(set_id).spec

    def index(self, set_id: str) -> SearchIndex:
        """Return the current index of a set.

        Raises:
            DocumentSetNotFoundError: No such set.
            EmptySetError: It has no index yet.
        """
        return _index_of(self._set(set_id))

    def status(self, set_id: str) -> SetStatus:
        """Describe one set.

        Raises:
            DocumentSetNotFoundError: No such set.
        """
        return self._set(set_id).status()

    def statuses(self) -> tuple[SetStatus, ...]:
        """Describe all sets."""
        return tuple(served.status() for served in self._sets.values())

    async def refresh(
        self, set_id: str, progress: Progress | None = None, *, again: bool = False
    ) -> SetStatus:
        """Sync and rebuild a set, or join the job that runs; never raises for a failed rebuild.

        `progress` is called in the job's thread. With `again` a running job goes round once
        more, for a caller that knows the source to be newer than what the job read.

        Raises:
            DocumentSetNotFoundError: No such set.
        """
        served = self._set(set_id)
        # Shielded: who gives up waiting does not stop the job for the others.
        await asyncio.shield(self._jobs.start(served, progress, again=again))
        if self.vectors is not None:
            await self.vectors.catch_up(served, progress)
        return served.status()

    def start_refresh(self, set_id: str, *, again: bool = False) -> None:
        """Start or join the rebuild of a set without waiting for it.

        Raises:
            DocumentSetNotFoundError: No such set.
        """
        self._jobs.start(self._set(set_id), again=again)

    def running_job(self, set_id: str) -> RefreshJob | None:
        """Return the job that rebuilds a set now, for its progress."""
        return self._jobs.running(set_id)

    async def for_answer(self, set_id: str) -> Answering:
        """Return the index to answer from; a changed local source is rebuilt first, for a while.

        Raises:
            DocumentSetNotFoundError: No such set.
            EmptySetError: It has no index yet.
        """
        served = self._set(set_id)
        if not served.is_git and served.index is not None:
            await self._catch_up(served)
        index, status = _index_of(served), served.status()
        if status.state is SetState.EMPTY:
            raise _empty(status)
        # The old index answers while the source is known to be newer: that is stale to a reader.
        if status.state is SetState.BUILDING and served.behind:
            return Answering(index, SetState.STALE, served.behind, status.checked_at)
        return Answering(index, status.state, status.reason, status.checked_at)

    async def dense_leg(self, set_id: str, index: SearchIndex, query: str) -> DenseLeg:
        """Return what dense search adds to a query over `index`; it waits for the encoder.

        Raises:
            DocumentSetNotFoundError: No such set.
        """
        served = self._set(set_id)
        if self.vectors is None:
            return DenseLeg()
        return await self.vectors.leg(served, index, query)

    def vector_status(self, set_id: str) -> VectorStatus | None:
        """Describe the dense leg of a set; None where none is configured.

        Raises:
            DocumentSetNotFoundError: No such set.
        """
        served = self._set(set_id)
        return None if self.vectors is None else self.vectors.status(served)

    async def prepare_dense(self, set_id: str) -> None:
        """Load the model of a set, for callers whose first query should not wait for it.

        Raises:
            DocumentSetNotFoundError: No such set.
        """
        served = self._set(set_id)
        if self.vectors is not None:
            await self.vectors.prepare(served)

    async def aclose(self) -> None:
        """Close the connections to embedding models; `run` does so at its end."""
        if self.vectors is not None:
            await self.vectors.aclose()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Keep the sets up to date while the context is open: start-up sync, watch, schedule."""
        if not self._loaded:
            await asyncio.to_thread(self.load)
        for served in self._sets.values():
            self._start_first_sync(served)
        upkeep = asyncio.create_task(self._keep_up(), name="library-upkeep")
        try:
            yield
        finally:
            tasks = [upkeep, *(task for _, task in self._watchers.values())]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._watchers.clear()
            await self._jobs.stop()
            await self.aclose()

    def _set(self, set_id: str) -> DocumentSet:
        served = self._sets.get(set_id)
        if served is None:
            known = ", ".join(self._sets) or "none"
            raise DocumentSetNotFoundError(
                f"There is no document set {set_id[:100]!r}. Known: {known}."
            )
        return served

    def _all_options(self, config: DocsConfig) -> tuple[SetOptions, ...]:
        return (*self._built_in, *config.sets)

    def _new_set(self, options: SetOptions) -> DocumentSet:
        is_liara = options.spec.id == LIARA_SET_ID
        return DocumentSet(
            options,
            data_dir=self._data_dir,
            image_dir=self._image_dir,
            starter_dir=self._starter_dir if is_liara else None,
            stale_after=self._stale_after,
            now=self._now,
            ca_bundle=self._ca_bundle,
        )

    def _start_first_sync(self, served: DocumentSet) -> None:
        # Reading a local folder costs no network: SYNC_ON_START is about fetching.
        if self._sync_on_start or not served.is_git:
            self._jobs.start(served, if_needed=True)

    async def _catch_up(self, served: DocumentSet) -> None:
        """Wait until the index holds the local source as it is now, or until the limit."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._ask_wait_seconds
        while await asyncio.to_thread(served.source_changed):
            served.behind = SOURCE_CHANGED
            task = self._jobs.start(served, if_needed=True)
            await asyncio.wait({task}, timeout=max(deadline - loop.time(), 0))
            if served.last_error or loop.time() >= deadline:
                return

    async def _refresh_if_changed(self, set_id: str) -> None:
        served = self._sets.get(set_id)
        if served is None:
            return
        if await asyncio.to_thread(served.source_changed):
            served.behind = SOURCE_CHANGED
            await asyncio.wait({self._jobs.start(served, if_needed=True)})

    async def _keep_up(self) -> None:
        while True:
            try:
                await self._reload_config_if_edited()
                for served in tuple(self._sets.values()):
                    if not served.building and await asyncio.to_thread(served.adopt_newer):
                        logger.info("set %s: took a newer snapshot", served.spec.id)
                        self._on_event(LibraryEvent("adopted", served.spec.id))
                    self._jobs.start_due(served)
                    if self.vectors is not None:
                        await self.vectors.keep_up(served)
                self._keep_watchers()
            except Exception:
                # Upkeep goes on: a bug here must not end refreshes for good.
                logger.exception("library upkeep broke")
            await asyncio.sleep(self._poll_seconds)

    def _keep_watchers(self) -> None:
        """Have exactly one watcher for each local folder that exists."""
        wanted = {
            served.spec.id: served.spec.source
            for served in self._sets.values()
            if not served.is_git
        }
        for set_id, (source, task) in tuple(self._watchers.items()):
            if wanted.get(set_id) != source or task.done():
                task.cancel()
                del self._watchers[set_id]
        for set_id, source in wanted.items():
            if set_id not in self._watchers:
                on_change = partial(self._refresh_if_changed, set_id)
                task = asyncio.create_task(watch_folder(Path(source), on_change))
                self._watchers[set_id] = (source, task)

    async def _reload_config_if_edited(self) -> None:
        path = self.config.path
        if path is None:
            return
        stat = await asyncio.to_thread(_stat, path)
        if stat == self._config_stat:
            return
        self._config_stat = stat
        built_in_ids = [options.spec.id for options in self._built_in]
        try:
            config = await asyncio.to_thread(load_config, path, built_in_ids=built_in_ids)
        except ConfigError as error:
            self.config_error = f"the edited config is not used, the old one is: {error}"
            logger.error("%s", self.config_error)
            self._on_event(LibraryEvent("config_invalid", detail=str(error)))
            return
        self.config_error = None
        await self._apply(config)
        self._on_event(LibraryEvent("config_reloaded"))

    async def _apply(self, config: DocsConfig) -> None:
        """Serve another config: unchanged sets go on, changed ones are rebuilt."""
        sets: dict[str, DocumentSet] = {}
        to_build = []
        for options in self._all_options(config):
            served = self._sets.get(options.spec.id)
            if served is None:
                served = self._new_set(options)
                await asyncio.to_thread(served.load)
                to_build.append(served)
            elif served.spec != options.spec:
                served.behind = CONFIG_CHANGED
                to_build.append(served)
            served.options = options
            sets[options.spec.id] = served
        for problem in config.problems:
            logger.error("config: %s", problem)
        logger.info("config reloaded: %s", ", ".join(sets))
        for set_id in {*self._sets, *sets}:
            self._jobs.forget(set_id)
            if self.vectors is not None and set_id not in sets:
                self.vectors.forget(set_id)
        self.config, self._sets = config, sets
        for served in to_build:
            self._jobs.start(served, again=True)


def _index_of(served: DocumentSet) -> SearchIndex:
    if served.index is None:
        raise _empty(served.status())
    return served.index


def _empty(status: SetStatus) -> EmptySetError:
    return EmptySetError(f"The document set {status.id!r} has no index yet: {status.reason}.")


def _stat(path: Path | None) -> tuple[int, int, int] | None:
    if path is None:
        return None
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _ignore(event: LibraryEvent) -> None:
    """Take an event and do nothing."""
