from datetime import UTC, datetime, timedelta

import pytest

from app.library.schedule import Schedule

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("10s", timedelta(seconds=10)),
        ("15m", timedelta(minutes=15)),
        (" 6 H ", timedelta(hours=6)),
        ("1d", timedelta(days=1)),
        ("*/5 * * * *", timedelta(minutes=5)),
        ("30 2 * * *", timedelta(hours=14, minutes=30)),
    ],
)
def test_durations_and_cron_expressions_give_the_next_moment(text: str, after: timedelta) -> None:
    assert Schedule.parse(text).next_after(NOW) == NOW + after


@pytest.mark.parametrize(
    "text", ["", "often", "9s", "0m", "-5m", "1.5h", "15", "* * *", "99 * * * *", "0 0 30 2 *"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        Schedule.parse(text)
