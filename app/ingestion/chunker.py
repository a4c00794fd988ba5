"""Document -> chunks: one a section, several for a section that is too long, tiny ones merged.

No chunk exceeds the limit, except for a line without any place to cut. Fences are balanced in
every chunk, and its lines are those of the source file.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.ingestion.blocks import Line, split_blocks
from app.ingestion.pieces import Piece, block_pieces, is_lead_in, join_pieces
from app.models import Chunk, Document, Section

CHUNKER_VERSION = 2
"""Raised whenever the same Document would give other chunks."""

# Under this many letters and digits a text says nothing by itself.
MIN_LETTERS = 20
# Room left in every part of a long section, so that a tiny neighbour can be merged into it.
MERGE_ROOM = 80

# A text this long has enough letters, or is worth keeping for something else.
MAX_TINY_CHARS = 600

_DESTINATION = re.compile(r"\]\([^()\s]*\)")
_LETTER = re.compile(r"[^\W_]")


@dataclass(slots=True)
class _Group:
    """Neighbouring sections that are chunked as one: the host gives heading path and anchor."""

    host: int
    members: list[int]


def chunk_document(document: Document, max_chars: int = 1500) -> tuple[Chunk, ...]:
    """Cut a document into chunks of at most `max_chars`, in file order."""
    sections = document.sections
    return tuple(
        Chunk(
            path=document.path,
            url=document.url,
            title=document.title,
            heading_path=sections[group.host].heading_path,
            anchor=sections[group.host].anchor,
            start_line=piece.start,
            end_line=piece.end,
            section=group.host,
            part=part,
            text=piece.text,
        )
        for group in _groups(sections)
        for part, piece in enumerate(_parts(_group_lines(group, sections), max_chars))
    )


def _groups(sections: Sequence[Section]) -> list[_Group]:
    """Give each tiny section to its child, its sibling or parent before it, else to the next."""
    groups: list[_Group] = []
    waiting: list[int] = []
    for index, section in enumerate(sections):
        is_parent = index + 1 < len(sections) and _is_above(section, sections[index + 1])
        if is_parent and not section.text:
            continue  # its heading is in the path of its children
        if not _is_tiny(section.text):
            groups.append(_Group(index, [*waiting, index]))
            waiting = []
        elif (
            not is_parent
            and not waiting
            and groups
            and _is_near(sections[groups[-1].host], section)
        ):
            groups[-1].members.append(index)
        else:
            waiting.append(index)
    if waiting and groups:
        groups[-1].members.extend(waiting)
    elif any(sections[index].text for index in waiting):
        groups.append(_Group(max(waiting, key=lambda index: len(sections[index].text)), waiting))
    return groups


def _is_above(section: Section, other: Section) -> bool:
    depth = len(section.heading_path)
    return depth < len(other.heading_path) and other.heading_path[:depth] == section.heading_path


def _is_near(host: Section, tiny: Section) -> bool:
    """Tell whether the host is the parent or a sibling (or lies under one) of the tiny section."""
    parent = tiny.heading_path[:-1]
    return host.heading_path[: len(parent)] == parent


def _is_tiny(text: str) -> bool:
    if len(text) > MAX_TINY_CHARS:
        return False
    # The address of a link says nothing: a lone `[Video link](https://…)` is tiny.
    shown = _DESTINATION.sub("]", text)
    return sum(1 for _ in _LETTER.finditer(shown)) < MIN_LETTERS


def _group_lines(group: _Group, sections: Sequence[Section]) -> list[Line]:
    """Return the text of a group; headings that are not in the host's path become lines of it."""
    host = sections[group.host]
    lines: list[Line] = []
    is_mixed = False
    for index in group.members:
        section = sections[index]
        is_foreign = not (index == group.host or (index < group.host and _is_above(section, host)))
        is_mixed = is_mixed or is_foreign
        if lines:
            lines.append(Line(section.start_line, ""))
        if section.heading_path and (is_foreign or (is_mixed and index == group.host)):
            heading = "#" * min(6, len(section.heading_path) + 1) + " " + section.heading_path[-1]
            lines += [Line(section.start_line, heading), Line(section.start_line, "")]
        if section.text:
            texts = section.text.split("\n")
            lines += map(
                Line, range(section.end_line - len(texts) + 1, section.end_line + 1), texts
            )
    return lines


def _parts(lines: Sequence[Line], max_chars: int) -> list[Piece]:
    if sum(len(line.text) + 1 for line in lines) <= max_chars + 1:
        whole = join_pieces(
            [piece for block in split_blocks(lines) for piece in block_pieces(block, max_chars)]
        )
        if len(whole.text) <= max_chars:
            return [whole]
    limit = max_chars - min(MERGE_ROOM, max_chars // 3)
    return _without_tiny(_packed(_pieces(lines, limit), limit), max_chars)


def _pieces(lines: Sequence[Line], limit: int) -> Iterator[Piece]:
    """Cut all blocks; what follows a lead-in or a few bare words leaves room for them."""
    leading = ""
    for block in split_blocks(lines):
        pieces = block_pieces(block, limit)
        if leading and len(leading) + len(pieces[0].text) > limit:
            pieces = block_pieces(block, limit - len(leading))
        yield from pieces
        last = pieces[-1]
        is_leading = is_lead_in(last, limit) or (len(pieces) == 1 and _is_tiny(leading + last.text))
        leading = f"{leading}{last.text}\n\n" if is_leading else ""
        if len(leading) > limit // 2:
            leading = ""


def _packed(pieces: Iterable[Piece], limit: int) -> Iterator[Piece]:
    """Fill parts in order; a lead-in moves on with what it leads in."""
    current: list[Piece] = []
    size = 0
    for piece in pieces:
        if current and size + len(piece.text) + 2 > limit:
            carried: list[Piece] = []
            while (
                len(current) > 1
                and is_lead_in(current[-1], limit)
                and sum(len(lead.text) + 2 for lead in (current[-1], *carried, piece)) <= limit + 2
            ):
                carried.insert(0, current.pop())
            yield join_pieces(current)
            current = carried
            size = sum(len(lead.text) + 2 for lead in carried)
        current.append(piece)
        size += len(piece.text) + 2
    if current:
        yield join_pieces(current)


def _without_tiny(parts: Iterable[Piece], max_chars: int) -> list[Piece]:
    """Merge each tiny part with the part before it where that fits.

    What then still is a few bare headings, or signs without any letter, is dropped.
    """
    merged: list[Piece] = []
    for part in parts:
        if merged and (_is_tiny(merged[-1].text) or _is_tiny(part.text)):
            both = join_pieces([merged[-1], part])
            if len(both.text) <= max_chars:
                merged[-1] = both
                continue
        merged.append(part)
    return [part for part in merged if not _is_bare(part.text)] or merged


def _is_bare(text: str) -> bool:
    if not _LETTER.search(text):
        return True
    lines = (line for line in text.split("\n") if line)
    return _is_tiny(text) and all(line.startswith("#") for line in lines)
