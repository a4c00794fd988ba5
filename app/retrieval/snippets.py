"""The part of a chunk that is shown for a query: around the densest match, cut at line ends."""

import re
from itertools import pairwise

from app.index.analyzer import expand, split_words

ELLIPSIS = "…"
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"(?<=[.!?؟۔])\s+")


def snippet(text: str, terms: frozenset[str], max_chars: int = 600) -> str:
    """Return up to `max_chars` characters of `text` around the lines that match `terms` best.

    Cuts fall between lines or sentences and are marked; code fences stay balanced.
    """
    text = text.strip("\n")
    if len(text) <= max_chars:
        return text
    pieces = _pieces(text, max_chars // 2)
    start, end = _best_window(pieces, terms, max_chars - 2 * len(ELLIPSIS) - 10)
    before = f"{ELLIPSIS}\n" if start else ""
    after = f"\n{ELLIPSIS}" if end < len(pieces) else ""
    body = "".join(pieces[start:end]).strip("\n")
    return f"{before}{_balance(pieces, start, body)}{after}"[:max_chars]


def _pieces(text: str, longest: int) -> list[str]:
    """Cut text into lines, and lines that are too long into sentences, then into slices."""
    pieces: list[str] = []
    for line in text.splitlines(keepends=True):
        if len(line) <= longest:
            pieces.append(line)
            continue
        for sentence in _split_keeping(line):
            pieces.extend(
                sentence[start : start + longest] for start in range(0, len(sentence), longest)
            )
    return pieces


def _split_keeping(line: str) -> list[str]:
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(line)), len(line)]
    return [line[left:right] for left, right in pairwise(cuts) if right > left]


def _best_window(pieces: list[str], terms: frozenset[str], budget: int) -> tuple[int, int]:
    """Return the run of pieces within `budget` that holds the most distinct query terms."""
    found = [_terms_in(piece) & terms for piece in pieces]
    best, best_score = (0, 1), -1.0
    for start in range(len(pieces)):
        length, end, seen = 0, start, set[str]()
        while end < len(pieces) and length + len(pieces[end]) <= budget:
            length += len(pieces[end])
            seen |= found[end]
            end += 1
        # Distinct terms count most; a window that starts with a match reads best.
        score = len(seen) + (0.5 if found[start] else 0.0)
        if score > best_score and end > start:
            best, best_score = (start, end), score
    return best


def _terms_in(piece: str) -> set[str]:
    return {term.text for word in split_words(piece) for term in expand(word)}


def _balance(pieces: list[str], start: int, body: str) -> str:
    """Reopen a fence that began before the window and close one that goes on after it."""
    marker = _open_fence("".join(pieces[:start]).splitlines())
    lines = body.splitlines()
    if marker:
        lines.insert(0, marker)
    still_open = _open_fence(lines)
    if still_open:
        lines.append(still_open)
    return "\n".join(lines)


def _open_fence(lines: list[str]) -> str | None:
    """Return the marker of the fence that is open after `lines`, if any."""
    marker: str | None = None
    for line in lines:
        match = _FENCE.match(line)
        if match is None:
            continue
        fence = match.group(1)
        if marker is None:
            marker = fence
        elif fence[0] == marker[0] and len(fence) >= len(marker):
            marker = None
    return marker
