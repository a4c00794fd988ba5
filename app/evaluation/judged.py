"""Judged questions: a query and the pages that answer it, one JSON object a line."""

import json
from dataclasses import dataclass
from pathlib import Path

from app.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A query and its right pages; none means that the docs do not answer it."""

    id: str
    query: str
    style: str
    lang: str
    gold: tuple[str, ...]


def read_judged(file: Path) -> list[JudgedQuestion]:
    """Read judged questions from JSON lines with id, query, gold and perhaps style and lang.

    Raises:
        InvalidArgumentError: The file cannot be read or a line is not a judged question.
    """
    try:
        # Not splitlines: a query may hold U+2028 or U+0085.
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{file} cannot be read: {error}") from error
    return [_parse(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _parse(file: Path, number: int, line: str) -> JudgedQuestion:
    try:
        row = json.loads(line)
        return JudgedQuestion(
            id=str(row.get("id", number)),
            query=str(row["query"]),
            style=str(row.get("style", "-")),
            lang=str(row.get("lang", "-")),
            gold=tuple(page_key(str(page)) for page in row["gold"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(
            f"{file}:{number}: expected an object with query and gold (a list of pages): {error}"
        ) from error


def page_key(page: str) -> str:
    """Return what two spellings of one page share: no fragment, no end slash, lower case."""
    return page.split("#", 1)[0].rstrip("/").lower()
