"""The spend guard: how many calls a day may go to the endpoint, kept across restarts.

The count lies in a file, which the processes of one data folder share, and in Redis where there is
one, for all replicas. A day is a day of UTC.
"""

import asyncio
import json
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from app.embeddings.shared_cache import SharedCache
from app.errors import DenseReason, DenseUnavailableError

logger = logging.getLogger(__name__)

_LOCK_SECONDS = 0.5


class DailyBudget:
    """Counts the calls of a day and refuses the one behind the limit."""

    def __init__(
        self,
        limit: int | None,
        file: Path | None = None,
        shared: SharedCache | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the calls a day (None: no limit) and where the count is kept."""
        self.limit = limit
        self._file = file
        self._shared = shared
        self._now = now
        self._day = ""
        self._calls = 0
        self._file_is_broken = False

    @property
    def calls_today(self) -> int:
        """The calls of today, as far as this process knows."""
        return self._calls if self._day == self._today() else 0

    @property
    def is_spent(self) -> bool:
        """Whether the limit of today is reached."""
        return self.limit is not None and self.calls_today >= self.limit

    @property
    def rests_until(self) -> datetime:
        """The next midnight of UTC, when the count starts anew."""
        tomorrow = self._now().date() + timedelta(days=1)
        return datetime.combine(tomorrow, time.min, UTC)

    async def spend(self) -> None:
        """Count one call that is about to be made.

        Raises:
            DenseUnavailableError: The calls of today are used up.
        """
        if self.limit is None:
            self._note(self._today(), self.calls_today + 1)
            return
        if self.is_spent:
            raise self.refusal()
        day = self._today()
        spent = await asyncio.to_thread(self._count_in_file, day)
        if self._shared is not None:
            everywhere = await self._shared.count(f"calls:{day}")
            spent = max(spent, everywhere or 0)
        self._note(day, spent)
        if spent > self.limit:
            raise self.refusal()

    def _note(self, day: str, calls: int) -> None:
        # Answers of two calls may come in either order: the count of a day only grows.
        self._calls = max(calls, self._calls) if day == self._day else calls
        self._day = day

    def refusal(self) -> DenseUnavailableError:
        """Return what a call is refused with once the limit is reached."""
        return DenseUnavailableError(
            DenseReason.BUDGET_SPENT,
            f"the {self.limit} embedding calls of today are used up;"
            f" the next are made from {self.rests_until:%Y-%m-%d %H:%M} UTC on",
        )

    def _today(self) -> str:
        return self._now().date().isoformat()

    def _count_in_file(self, day: str) -> int:
        """Return the calls of the day with this one, also where the file cannot be kept."""
        known = self._calls if self._day == day else 0
        if self._file is None:
            return known + 1
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self._file}.lock", timeout=_LOCK_SECONDS):
                calls = max(_read(self._file, day), known) + 1
                _write(self._file, day, calls)
        except (OSError, Timeout) as error:
            if not self._file_is_broken:
                logger.warning("the count of embedding calls is kept in memory only: %s", error)
            self._file_is_broken = True
            return known + 1
        self._file_is_broken = False
        return calls


def _read(file: Path, day: str) -> int:
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        calls = kept["calls"] if kept["day"] == day else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return calls if isinstance(calls, int) and calls >= 0 else 0


def _write(file: Path, day: str, calls: int) -> None:
    beside = file.with_name(f"{file.name}.{os.getpid()}")
    beside.write_text(json.dumps({"day": day, "calls": calls}), encoding="utf-8")
    beside.replace(file)
