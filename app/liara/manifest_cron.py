"""The schedules of a liara.json."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from app.liara.manifest_context import ManifestContext
from app.liara.manifest_finding import Finding, quote
from app.liara.manifest_schema import finding

FIELDS = 5
# Longer than any real schedule field; keeps int() of hostile digits out of the parser.
MAX_FIELD_CHARS = 60
_ALLOWED = "minute hour day month weekday command, such as: 0 3 * * * cd $ROOT && python3 clean.py"
_FIELD = re.compile(r"[0-9*/,?LW#A-Za-z-]+")
_SCHEDULE_LIKE = re.compile(r"[0-9*][0-9*/,-]*")


def cron_findings(context: ManifestContext) -> Iterator[Finding]:
    """Check each entry of `cron`, and whether the platform runs them at all."""
    entries = [*context.strings("cron")]
    platform = context.platform
    if entries and platform is not None and not platform.runs_cron:
        problem = f"{platform.title} is not among the platforms that run `cron`."
        found = finding(("cron",), "warning", problem, "Schedule in the program or the image.")
        page = platform.cron_page or found.page
        yield Finding(found.json_path, found.severity, problem, found.allowed, page)
    for index, entry in entries:
        if (fault := _fault(entry)) is not None:
            yield finding(("cron", index), "error", fault, _ALLOWED)


def _fault(entry: str) -> str | None:
    words = entry.split(maxsplit=FIELDS)
    if words and words[0].startswith("@"):
        return f"{quote(words[0])} is a shorthand; the documented form has five fields."
    if len(words) < FIELDS or not all(_FIELD.fullmatch(word) for word in words[:FIELDS]):
        return f"{quote(entry)} does not begin with a schedule of five fields."
    if any(len(word) > MAX_FIELD_CHARS for word in words[:FIELDS]):
        return "A field of the schedule is too long."
    try:
        CronSim(" ".join(words[:FIELDS]).upper(), datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        return f"{quote(' '.join(words[:FIELDS]))} is no schedule: {error}."
    if len(words) == FIELDS:
        return "No command follows the schedule."
    first = words[FIELDS].split(maxsplit=1)[0]
    if _SCHEDULE_LIKE.fullmatch(first):
        return f"The command begins with {quote(first)}: is this a schedule of six fields?"
    return None
