"""Pieces: a block of a section, cut to a size, each piece readable by itself."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from app.ingestion.blocks import Block, Fence, Kind, Line, is_list_item, opening_fence

# An opening line is repeated in each part of its fence: a longer info string is not worth it.
MAX_REPEATED_INFO = 60
# However small the limit, a part of a fence or table must get on.
MIN_ROOM = 40

_LETTER = re.compile(r"[^\W_]")
_SENTENCE_END = re.compile(r"[.!?؟۔][\"'»)\]]{0,3}(?=\s)|[。！？]")
_SPACE = re.compile(r"\s")
_LEAD_IN_ENDS = (":", "：", "...", "…")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text with the source lines it came from; `after_blank`: a blank line stands before it."""

    text: str
    start: int
    end: int
    after_blank: bool = True


def join_pieces(pieces: Sequence[Piece]) -> Piece:
    """Join neighbouring pieces into one."""
    parts = [pieces[0].text]
    for piece in pieces[1:]:
        parts += ["\n\n" if piece.after_blank else "\n", piece.text]
    start = min(piece.start for piece in pieces)
    end = max(piece.end for piece in pieces)
    return Piece("".join(parts), start, end, pieces[0].after_blank)


def is_lead_in(piece: Piece, limit: int) -> bool:
    """Tell whether a piece announces what follows it: `For example:`, a heading, a bare bullet."""
    if len(piece.text) > limit // 3:
        return False
    text = piece.text.rstrip(" *_")
    return (
        text.endswith(_LEAD_IN_ENDS) or text.startswith("#") or not _LETTER.search(text)
    ) and "```" not in text


def block_pieces(block: Block, limit: int) -> list[Piece]:
    """Cut a block into pieces of at most `limit` characters."""
    if block.kind is Kind.FENCE:
        return _fence_pieces(block, limit)
    text = _text(block.lines)
    if len(text) <= limit:
        return [Piece(text, block.lines[0].number, block.lines[-1].number, block.after_blank)]
    if block.kind is Kind.TABLE:
        header = _text(block.lines[:2])
        if len(header) <= limit // 2:
            return _table_pieces(block, header, limit)
    groups = _packed_lines(block.lines, limit, limit, is_list_item)
    return [
        Piece(_text(group), group[0].number, group[-1].number, block.after_blank and not index)
        for index, group in enumerate(groups)
    ]


def _table_pieces(block: Block, header: str, limit: int) -> list[Piece]:
    room = max(MIN_ROOM, limit - len(header) - 1)
    groups = _packed_lines(block.lines[2:], room, 2 * room, lambda _: True)
    pieces = [
        Piece(f"{header}\n{_text(group)}", group[0].number, group[-1].number) for group in groups
    ]
    pieces[0] = Piece(
        pieces[0].text, block.lines[0].number, pieces[0].end, after_blank=block.after_blank
    )
    return pieces


def _fence_pieces(block: Block, limit: int) -> list[Piece]:
    fence = opening_fence(block.lines[0].text)
    assert fence is not None, "a fence block starts with its opening line"  # noqa: S101
    first, last = block.lines[0], block.lines[-1]
    body = block.lines[1:-1] if block.is_closed else block.lines[1:]
    closing = last.text if block.is_closed else fence.closing
    whole = "\n".join([first.text, *(line.text for line in body), closing])
    if len(whole) <= limit or not body:
        return [Piece(whole, first.number, last.number, block.after_blank)]
    opening = _short_opening(fence)
    room = max(MIN_ROOM, limit - max(len(opening), len(first.text)) - len(closing) - 2)
    groups = list(_packed_lines(body, room, limit, lambda text: not text.strip()))
    pieces = []
    for index, group in enumerate(groups):
        is_first, is_last = index == 0, index == len(groups) - 1
        text = "\n".join([first.text if is_first else opening, _text(group), closing])
        start = first.number if is_first else group[0].number
        end = last.number if is_last else group[-1].number
        pieces.append(Piece(text, start, end, block.after_blank if is_first else True))
    return pieces


def _short_opening(fence: Fence) -> str:
    return fence.opening if len(fence.info) <= MAX_REPEATED_INFO else fence.closing


def _packed_lines(
    lines: Sequence[Line], limit: int, stretch: int, is_good_cut: Callable[[str], bool]
) -> Iterator[list[Line]]:
    """Group lines up to `limit` characters, cut before a good line in the latter half if any.

    `stretch` is how much a piece without any space may exceed the limit.
    """
    group: list[Line] = []
    size = 0
    for line in _short_lines(lines, limit, stretch):
        if group and size + len(line.text) > limit:
            cut = len(group) if is_good_cut(line.text) else _good_cut(group, limit, is_good_cut)
            yield from _stripped(group[:cut])
            group = group[cut:]
            size = sum(len(kept.text) + 1 for kept in group)
        group.append(line)
        size += len(line.text) + 1
    yield from _stripped(group)


def _good_cut(group: Sequence[Line], limit: int, is_good_cut: Callable[[str], bool]) -> int:
    size = sum(len(line.text) + 1 for line in group)
    for index in range(len(group) - 1, 0, -1):
        size -= len(group[index].text) + 1
        if size < limit // 2:
            break
        if is_good_cut(group[index].text):
            return index
    return len(group)


def _stripped(group: list[Line]) -> Iterator[list[Line]]:
    start, end = 0, len(group)
    while start < end and not group[start].text.strip():
        start += 1
    while end > start and not group[end - 1].text.strip():
        end -= 1
    if start < end:
        yield group[start:end]


def _short_lines(lines: Sequence[Line], limit: int, stretch: int) -> Iterator[Line]:
    for line in lines:
        if len(line.text) <= limit:
            yield line
        else:
            for text in _cut_line(line.text, limit, limit + stretch):
                yield Line(line.number, text)


def _cut_line(text: str, limit: int, longest: int) -> Iterator[str]:
    """Cut a line after sentences, else at spaces, else at `longest`; the cost is linear."""
    start = 0
    while len(text) - start > limit:
        cut = _cut_position(text, start, limit, longest)
        if part := text[start:cut].strip():
            yield part
        start = cut
    if part := text[start:].rstrip():
        yield part


def _cut_position(text: str, start: int, limit: int, longest: int) -> int:
    end = start + limit
    cut = 0
    for match in _SENTENCE_END.finditer(text, start + limit // 2, end):
        cut = match.end()
    if cut:
        return cut
    for match in _SPACE.finditer(text, start + limit // 2, end):
        cut = match.end()
    if cut:
        return cut
    later = _SPACE.search(text, end, start + longest)
    return later.start() if later else min(start + longest, len(text))


def _text(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in lines)
