"""Reads lay questions: one JSON object a line, {"url": page, "questions": [text, ...]}."""

import json
from collections.abc import Mapping
from pathlib import Path

from app.models import Skipped

_LONGEST_QUESTION = 300


def read_questions(file: Path) -> tuple[dict[str, tuple[str, ...]], list[Skipped]]:
    """Return the questions of each page (URL, or path of a page without one).

    Lines that cannot be used are skipped with a reason; a page on several lines gets them all.
    """
    try:
        # Not splitlines: a question may hold U+2028 or U+0085.
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        return {}, [Skipped(file.name, f"the questions cannot be read: {type(error).__name__}")]
    questions: dict[str, tuple[str, ...]] = {}
    skipped = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        entry = _parse(line)
        if entry is None:
            skipped.append(Skipped(f"{file.name}:{number}", "not a page with a list of questions"))
            continue
        page, asked = entry
        questions[page] = questions.get(page, ()) + asked
    return questions, skipped


def _parse(line: str) -> tuple[str, tuple[str, ...]] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, Mapping):
        return None
    page, asked = entry.get("url"), entry.get("questions")
    if not isinstance(page, str) or not isinstance(asked, list):
        return None
    if not all(isinstance(item, str) and len(item) <= _LONGEST_QUESTION for item in asked):
        return None
    return page, tuple(item for item in asked if item.strip())
