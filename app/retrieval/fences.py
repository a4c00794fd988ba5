"""Code fences in text that is cut: which one is still open, and the line that closes it."""

import re
from collections.abc import Iterable

# A fence may stand in a quote or at the head of a list item.
_FENCE = re.compile(
    r"^(?P<lead>[ \t>]*)(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<mark>`{3,}|~{3,})(?P<info>.*)$"
)


def is_fence(line: str) -> bool:
    """Return whether a line can open or close a fence."""
    found = _FENCE.match(line)
    # A line such as ```code``` is inline code: backticks in the info string open nothing.
    return found is not None and not (found["mark"][0] == "`" and "`" in found["info"])


def closing_fence(lines: Iterable[str]) -> str | None:
    """Return the line that closes the fence left open after `lines`; None when none is open."""
    mark, closing = "", None
    for line in lines:
        found = _FENCE.match(line)
        if found is None or not is_fence(line):
            continue
        if closing is None:
            mark = found["mark"]
            closing = found["lead"] + " " * len(found["item"] or "") + mark
        elif found["mark"].startswith(mark) and not found["info"].strip():
            closing = None
    return closing
