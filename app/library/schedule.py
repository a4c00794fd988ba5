"""When a git source is fetched again: `"15m"`, `"6h"`, or a cron expression in UTC."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronsim import CronSim, CronSimError

_DURATION = re.compile(r"(\d{1,6})\s*([smhd])", re.IGNORECASE)
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

MIN_SECONDS = 10
"""A shorter interval would only load the git host."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A repeated moment: every so many seconds, or as a cron expression says."""

    text: str
    every_seconds: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """Read a duration such as `15m` or a cron expression such as `30 2 * * *`.

        Raises:
            ValueError: It is neither, or the interval is under ten seconds.
        """
        stripped = text.strip()
        if match := _DURATION.fullmatch(stripped):
            seconds = int(match[1]) * _UNIT_SECONDS[match[2].lower()]
            if seconds < MIN_SECONDS:
                raise ValueError(f"must be at least {MIN_SECONDS}s")
            return cls(stripped, seconds)
        try:
            CronSim(stripped, datetime(2026, 1, 1))
        except CronSimError as error:
            raise ValueError(
                'must be a duration such as "15m", "6h" or "1d", or a cron expression'
            ) from error
        return cls(stripped)

    def next_after(self, moment: datetime) -> datetime:
        """Return the first moment of the schedule after `moment`."""
        if self.every_seconds is not None:
            return moment + timedelta(seconds=self.every_seconds)
        return next(CronSim(self.text, moment))
