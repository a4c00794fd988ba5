"""What a check of liara.json says, and how it may quote the file."""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.liara.secrets import mask_secrets

Severity = Literal["error", "warning", "info"]
PathPart = str | int

# The page that describes the whole file.
MANIFEST_PAGE = "https://docs.liara.ir/paas/liarajson/"
# A finding quotes no more than this of the file: the file is someone else's text.
MAX_ECHO_CHARS = 80
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ZWNJ = "\u200c"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: where it is, how bad, what is allowed instead and which page says so.

    `line` and `column` count from 1 and are set for faults of the JSON syntax.
    """

    json_path: str
    severity: Severity
    problem: str
    allowed: str | None = None
    page: str | None = None
    line: int | None = None
    column: int | None = None


def json_path(parts: Sequence[PathPart]) -> str:
    """Write a path such as `$.disks[0].mountTo`; unusual keys stand in brackets."""
    steps = ["$"]
    for part in parts:
        if isinstance(part, int):
            steps.append(f"[{part}]")
        elif _PLAIN_KEY.fullmatch(part) and len(part) <= MAX_ECHO_CHARS:
            steps.append(f".{part}")
        else:
            steps.append(f"[{quote(part)}]")
    return "".join(steps)


def clean(text: str, *, limit: int = MAX_ECHO_CHARS) -> str:
    """Return text that can be shown: secrets masked, no control characters, cut to `limit`."""
    head = mask_secrets(text)[: limit + 1]
    shown = "".join(
        c if c == _ZWNJ or unicodedata.category(c)[0] != "C" else "\ufffd" for c in head
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def quote(text: str) -> str:
    """Return text in double quotes, cleaned."""
    return json.dumps(clean(text), ensure_ascii=False)


def show(value: object) -> str:
    """Describe a JSON value in a few characters."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case int() | float():
            return clean(repr(value))
        case list():
            return "an array"
    return "an object"
