"""From hits to passages: whole chunks, re-joined sections, within a budget of characters.

Text is as the source has it: neutralising comes after, since a cut can move what a line
begins with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile

from app.index.snapshot import SearchIndex
from app.models import Chunk, Hit
from app.retrieval.fences import closing_fence, is_fence

GAP = "…"
"""Marks text that was left out, on a line of its own."""

MIN_CUT_CHARS = 200
"""Less room than this is left empty: a cut passage of a line or two says little."""

SEPARATOR_CHARS = 2
"""The empty line between two passages."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Cited text of one section. `number` counts within one answer, from 1."""

    number: int
    path: str
    url: str | None
    title: str
    heading_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    text: str
    score: float

    @property
    def heading(self) -> str:
        """The headings above the text, outermost first; the title when there are none."""
        return heading_of(self)


@dataclass(slots=True)
class _Section:
    """The hits of one section, best first as they come."""

    score: float
    parts: list[Chunk] = field(default_factory=list)
    cut: Chunk | None = None


def heading_of(item: Passage | Chunk) -> str:
    """Return the heading path as one line, or the title of a text without headings."""
    return " › ".join(item.heading_path) or item.title


def header(number: int, path: str, heading: str) -> str:
    """Return the line that a passage begins with."""
    return f"[{number}] {path} › {heading}"


def build_passages(index: SearchIndex, hits: Sequence[Hit], max_chars: int) -> tuple[Passage, ...]:
    """Return the passages of the hits, best section first, in at most `max_chars` with headers.

    Better hits come first into the budget. The parts of one section become one passage in file
    order. The first that does not fit is cut at a line break; the best hit is always kept.
    """
    sections = _fill(index, hits, max_chars)
    passages = []
    for number, section in enumerate(sections, start=1):
        parts = sorted(section.parts, key=lambda chunk: chunk.part)
        first, last = parts[0], parts[-1]
        passages.append(
            Passage(
                number=number,
                path=first.path,
                url=first.url,
                title=first.title,
                heading_path=first.heading_path,
                anchor=first.anchor,
                start_line=first.start_line,
                end_line=max(first.end_line, last.end_line),
                text=_join(parts, section.cut, _source_lines(index, first.path)),
                score=section.score,
            )
        )
    return tuple(passages)


def cut_at_line(text: str, max_chars: int) -> str:
    """Return the head of `text` in about `max_chars`, marked as cut, with balanced fences.

    The cut falls at a line break, or between words when the next line break is far off. A fence
    that is open there is closed, beyond the limit if need be.
    """
    if len(text) <= max_chars:
        return text
    room = max(max_chars - len(GAP) - 1, 1)
    end = text.rfind("\n", 0, room + 1)
    if end < room // 2:
        end = max(text.rfind(" ", 0, room + 1), end)
    if end < room // 2:
        end = room
    lines = text[:end].rstrip().split("\n")
    closing = closing_fence(lines)
    if closing is not None:
        lines.append(closing)
    return "\n".join([*lines, GAP])


def _fill(index: SearchIndex, hits: Iterable[Hit], max_chars: int) -> list[_Section]:
    sections: dict[tuple[str, int], _Section] = {}
    left = max_chars
    for hit in hits:
        chunk = hit.chunk
        key = (chunk.path, chunk.section)
        known = key in sections
        room = left - _overhead(chunk, len(sections) + 1, known)
        if len(chunk.text) <= room:
            sections.setdefault(key, _Section(hit.score)).parts.append(chunk)
            left = room - len(chunk.text)
        elif not sections or room >= MIN_CUT_CHARS:
            section = sections.setdefault(key, _Section(hit.score))
            source = _source_lines(index, chunk.path)
            section.cut = _cut_chunk(chunk, max(room, MIN_CUT_CHARS), source)
            section.parts.append(section.cut)
            break
    return list(sections.values())


def _overhead(chunk: Chunk, number: int, known: bool) -> int:
    """Return the characters that a chunk costs beside its text."""
    if known:
        return len(GAP) + SEPARATOR_CHARS
    return len(header(number, chunk.path, heading_of(chunk))) + 1 + SEPARATOR_CHARS


def _cut_chunk(chunk: Chunk, max_chars: int, source: Sequence[str]) -> Chunk:
    text = cut_at_line(chunk.text, max_chars)
    lines = chunk.text.split("\n")
    kept = sum(1 for _ in takewhile(_begins, zip(lines, text.split("\n")[:-1], strict=False)))
    if _is_added(lines[0], source, chunk.start_line):
        kept -= 1
    end_line = min(chunk.end_line, chunk.start_line + max(kept - 1, 0))
    return replace(chunk, text=text, end_line=end_line)


def _begins(pair: tuple[str, str]) -> bool:
    whole, shown = pair
    return whole.startswith(shown)


def _source_lines(index: SearchIndex, path: str) -> list[str]:
    return index.source(path).split("\n")


def _join(parts: Sequence[Chunk], cut: Chunk | None, source: Sequence[str]) -> str:
    """Put the parts of a section together as the file has them; what is left out is marked."""
    text = parts[0].text
    for before, after in pairwise(parts):
        if before is cut:
            # Its mark of the cut stands for the gap as well.
            text = f"{text}\n{after.text}"
        elif after.part == before.part + 1:
            text = _join_neighbours(text, before, after, source)
        else:
            text = f"{text}\n{GAP}\n{after.text}"
    return text


def _join_neighbours(text: str, before: Chunk, after: Chunk, source: Sequence[str]) -> str:
    head, tail = text.split("\n"), after.text.split("\n")
    if _is_added(head[-1], source, before.end_line) and _is_added(
        tail[0], source, after.start_line
    ):
        # The chunker closed a fence here and opened it again: the file has neither line.
        head, tail = head[:-1], tail[1:]
    if after.start_line <= before.end_line:
        # One long line in two parts.
        return "\n".join(head) + " " + "\n".join(tail)
    blank_lines = [""] if after.start_line > before.end_line + 1 else []
    return "\n".join([*head, *blank_lines, *tail])


def _is_added(line: str, source: Sequence[str], number: int) -> bool:
    """Return whether a fence line at a chunk's border is not in the file."""
    if not is_fence(line) or not 1 <= number <= len(source):
        return False
    return line.strip() != source[number - 1].strip()
