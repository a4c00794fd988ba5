"""When a document set is rebuilt: at start, on a schedule, on file changes, when someone asks.

One job a set: whoever asks for a rebuild while one runs joins it.
"""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter

from watchfiles import awatch

from app.errors import DocsError
from app.library.background import run_in_daemon_thread
from app.library.document_set import DocumentSet
from app.library.status import LibraryEvent, OnEvent
from app.models import Progress

logger = logging.getLogger(__name__)

FIRST_RETRY = timedelta(seconds=30)
LAST_RETRY = timedelta(hours=1)
WATCH_AGAIN_SECONDS = 10.0
"""How long a folder that cannot be watched is left alone; asks still compare file times."""

_FREEZE_EVERY = 32


@dataclass(slots=True)
class RefreshJob:
    """A running rebuild: its task, how far it is, and who wants to hear of it."""

    task: "asyncio.Task[None] | None" = None
    stage: str = "waiting"
    done: int = 0
    total: int = 0
    again: bool = False
    listeners: list[Progress] = field(default_factory=list)

    def report(self, stage: str, done: int, total: int) -> None:
        """Note progress; called in the job's thread."""
        self.stage, self.done, self.total = stage, done, total
        if done % _FREEZE_EVERY == 0:
            # A full garbage collection stops every thread, for longer the more objects there are,
            # and a build makes hundreds of thousands: it need not look at those of before.
            gc.freeze()
        for listener in tuple(self.listeners):
            listener(stage, done, total)


class RefreshJobs:
    """Starts rebuilds, one a document set at a time, and retries those that failed."""

    def __init__(self, on_event: OnEvent, now: Callable[[], datetime]) -> None:
        """Take the clock of schedules and retries, and who counts what happens."""
        self._on_event = on_event
        self._now = now
        self._jobs: dict[str, RefreshJob] = {}
        self._failures: dict[str, int] = {}
        self._due: dict[str, datetime] = {}

    def start(
        self,
        served: DocumentSet,
        progress: Progress | None = None,
        *,
        if_needed: bool = False,
        again: bool = False,
    ) -> "asyncio.Task[None]":
        """Start a rebuild or join the one that runs; the task never fails.

        With `if_needed` the fresh work of another process is enough. With `again` a running
        job goes round once more: the source has changed since it was read.
        """
        job = self._jobs.get(served.spec.id)
        if job is None or job.task is None or job.task.done():
            job = self._jobs[served.spec.id] = RefreshJob()
            # Compared with the time of a file, whatever the clock of the schedules says.
            since = datetime.now(UTC) if if_needed else None
            job.task = asyncio.create_task(
                self._run(served, job, since), name=f"refresh-{served.spec.id}"
            )
        else:
            job.again = job.again or again
        if progress is not None:
            job.listeners.append(progress)
        return job.task

    def running(self, set_id: str) -> RefreshJob | None:
        """Return the job of a set, if one runs."""
        job = self._jobs.get(set_id)
        return job if job is not None and job.task is not None and not job.task.done() else None

    def start_due(self, served: DocumentSet) -> None:
        """Start the rebuild of a set whose scheduled moment or retry has come."""
        set_id, now = served.spec.id, self._now()
        if self.running(set_id):
            return
        due, planned = self._due.get(set_id), self._next(served, now)
        # Planned anew, the moment comes sooner only where the clock was set back.
        if due is None or (planned is not None and planned < due):
            self._plan(served, now)
        elif due <= now:
            self._plan(served, now)
            self.start(served, if_needed=True)

    def forget(self, set_id: str) -> None:
        """Drop the plans of a set that is gone or has changed."""
        self._due.pop(set_id, None)
        self._failures.pop(set_id, None)

    async def stop(self) -> None:
        """Wait for nothing: cancel what waits for the threads, which end with the process."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _plan(self, served: DocumentSet, now: datetime) -> None:
        planned = self._next(served, now)
        if planned is not None:
            self._due[served.spec.id] = planned
        else:
            self._due.pop(served.spec.id, None)

    def _next(self, served: DocumentSet, now: datetime) -> datetime | None:
        schedule = served.options.refresh
        moments = [schedule.next_after(now)] if schedule else []
        if failures := self._failures.get(served.spec.id):
            moments.append(now + min(FIRST_RETRY * 2 ** min(failures - 1, 10), LAST_RETRY))
        return min(moments, default=None)

    async def _run(self, served: DocumentSet, job: RefreshJob, since: datetime | None) -> None:
        served.building = True
        try:
            await self._build_once(served, job, since)
            while job.again:
                job.again = False
                await self._build_once(served, job, None)
        finally:
            served.building = False
        self._plan(served, self._now())

    async def _build_once(
        self, served: DocumentSet, job: RefreshJob, since: datetime | None
    ) -> None:
        set_id, started = served.spec.id, perf_counter()
        work = partial(served.build, job.report, unless_done_since=since)
        try:
            outcome = await run_in_daemon_thread(work, name=f"refresh-{set_id}")
        except (DocsError, OSError) as error:
            self._failed(served, _reason(error), perf_counter() - started)
        except Exception as error:
            # A bug in one set's build must not end the service of the others.
            logger.exception("set %s: the rebuild broke", set_id)
            self._failed(
                served, f"internal error: {type(error).__name__}", perf_counter() - started
            )
        else:
            self._failures.pop(set_id, None)
            seconds = perf_counter() - started
            logger.info("set %s: %s in %.1f s", set_id, outcome, seconds)
            self._on_event(LibraryEvent(outcome, set_id, seconds=seconds))
        finally:
            gc.unfreeze()

    def _failed(self, served: DocumentSet, reason: str, seconds: float) -> None:
        served.note_failure(reason)
        self._failures[served.spec.id] = self._failures.get(served.spec.id, 0) + 1
        logger.warning("set %s: the refresh failed: %s", served.spec.id, reason)
        self._on_event(LibraryEvent("refresh_failed", served.spec.id, reason, seconds))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
    return str(error)


async def watch_folder(folder: Path, on_change: Callable[[], Awaitable[None]]) -> None:
    """Await `on_change()` after each burst of changes below `folder`, until cancelled."""
    while True:
        try:
            async for _ in awatch(folder, debounce=400, step=50, ignore_permission_denied=True):
                await on_change()
        except (OSError, RuntimeError) as error:
            logger.info("not watching %s: %s", folder, error)
        await asyncio.sleep(WATCH_AGAIN_SECONDS)
