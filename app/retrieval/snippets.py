"""The part of a chunk that is shown for a query: around the densest match, cut at line ends."""

import re
from itertools import pairwise

from app.index.analyzer import split_words, term_texts
from app.retrieval.fences import open_fence

ELLIPSIS = "…"
# Room for the marks of a cut and for the lines that reopen and close a fence.
_RESERVED_CHARS = 40
_SENTENCE_END = re.compile(r"(?<=[.!?؟۔])\s+")


def snippet(text: str, terms: frozenset[str], max_chars: int = 600) -> str:
    """Return up to `max_chars` characters of `text` around the lines that match `terms` best.

    Cuts fall between lines or sentences and are marked; code fences stay balanced.
    """
    text = text.strip("\n")
    if len(text) <= max_chars:
        return text
    pieces = _pieces(text, max_chars // 2)
    start, end = _best_window(pieces, terms, max_chars - _RESERVED_CHARS)
    before = f"{ELLIPSIS}\n" if start else ""
    after = f"\n{ELLIPSIS}" if end < len(pieces) else ""
    return f"{before}{_balanced(pieces, start, end)}{after}"


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
    return {term for word in split_words(piece) for term in term_texts(word)}


def _balanced(pieces: list[str], start: int, end: int) -> str:
    """Reopen a fence that began before the window and close one that goes on after it."""
    lines = "".join(pieces[start:end]).strip("\n").splitlines()
    opened = open_fence("".join(pieces[:start]).splitlines())
    # A long info string is left out, so that the result keeps its size.
    if opened and not (lines and lines[0].strip() == opened.closing.strip()):
        short = len(opened.opening) <= _RESERVED_CHARS // 2
        lines.insert(0, opened.opening if short else opened.closing)
    elif opened:
        del lines[0]
    still_open = open_fence(lines)
    if still_open and lines[-1] == still_open.opening:
        del lines[-1]
    elif still_open:
        lines.append(still_open.closing)
    return "\n".join(lines)
