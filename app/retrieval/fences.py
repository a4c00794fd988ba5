"""Code fences in text that is cut: which one is still open, and the line that closes it."""

import re
from collections.abc import Iterable
from typing import NamedTuple

# A fence may stand in a quote or at the head of a list item.
_FENCE = re.compile(
    r"^(?P<lead>[ \t>]*)(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<mark>`{3,}|~{3,})(?P<info>.*)$"
)


def is_fence(line: str) -> bool:
    """Return whether a line can open or close a fence."""
    found = _FENCE.match(line)
    # A line such as ```code``` is inline code: backticks in the info string open nothing.
    return found is not None and not (found["mark"][0] == "`" and "`" in found["info"])


class OpenFence(NamedTuple):
    """A fence that no line has closed: how it was opened, and the line that closes it."""

    opening: str
    closing: str


def open_fence(lines: Iterable[str]) -> OpenFence | None:
    """Return the fence left open after `lines`; None when none is open."""
    mark, found_open = "", None
    for line in lines:
        found = _FENCE.match(line)
        if found is None or not is_fence(line):
            continue
        if found_open is None:
            mark = found["mark"]
            lead = found["lead"] + " " * len(found["item"] or "")
            found_open = OpenFence(lead + mark + found["info"].rstrip(), lead + mark)
        elif found["mark"].startswith(mark) and not found["info"].strip():
            found_open = None
    return found_open


def closing_fence(lines: Iterable[str]) -> str | None:
    """Return the line that closes the fence left open after `lines`; None when none is open."""
    fence = open_fence(lines)
    return fence.closing if fence else None
