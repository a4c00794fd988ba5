"""Blocks of a section: what the chunker would rather not cut, with the numbers of their lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

_CONTAINER = r"(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])))*"
_FENCE = re.compile(rf"({_CONTAINER}[ \t]*)(`{{3,}}(?=[^`]*$)|~{{3,}})(.*)")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_DELIMITER_ROW = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_MARKER = re.compile(r"[-*+]|\d+[.)]")


class Line(NamedTuple):
    """One line of text and its 1-based number in the source file."""

    number: int
    text: str


class Kind(Enum):
    """How a block may be cut."""

    TEXT = "text"
    FENCE = "fence"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together; no blank line before the first or after the last.

    `after_blank` tells whether a blank line stands before it. `is_closed` is false for a fence
    that its list, quote or section ends before a closing line.
    """

    kind: Kind
    lines: Sequence[Line]
    after_blank: bool
    is_closed: bool = True


class Fence(NamedTuple):
    """An opening fence line, taken apart."""

    prefix: str
    marks: str
    info: str

    @property
    def opening(self) -> str:
        """The line that opens the fence again in another chunk."""
        return f"{self.continuation}{self.marks}{self.info}".rstrip()

    @property
    def closing(self) -> str:
        """The line that closes the fence."""
        return self.continuation + self.marks

    @property
    def continuation(self) -> str:
        """What the lines inside the fence start with: spaces for list markers, quote marks."""
        return _MARKER.sub(lambda match: " " * len(match.group()), self.prefix)

    def is_closed_by(self, line: str) -> bool:
        """Tell whether a line closes this fence."""
        bare = line.lstrip(" \t>").rstrip()
        is_marks = len(bare) >= len(self.marks) and not bare.strip(self.marks[0])
        return is_marks and line.count(">", 0, len(line) - len(bare)) <= self.prefix.count(">")

    def is_left_by(self, line: str) -> bool:
        """Tell whether a line stands outside of the quote or list item that holds the fence."""
        if ">" in self.prefix:
            return not line.lstrip().startswith(">")
        has_marker = bool(_MARKER.search(self.prefix))
        return has_marker and bool(line.strip()) and not line.startswith((" ", "\t"))


def opening_fence(line: str) -> Fence | None:
    """Return the fence that a line opens, if any."""
    if "```" not in line and "~~~" not in line:
        return None
    match = _FENCE.fullmatch(line)
    return Fence(*match.groups()) if match else None


def is_list_item(line: str) -> bool:
    """Tell whether a line starts a list item."""
    return bool(_ITEM.match(line))


def split_blocks(lines: Sequence[Line]) -> Iterator[Block]:
    """Split lines at blank lines, fences and the borders of tables, in order."""
    index = 0
    after_blank = False
    while index < len(lines):
        if not lines[index].text.strip():
            after_blank = True
            index += 1
            continue
        kind, end, is_closed = _block_end(lines, index)
        yield Block(kind, lines[index:end], after_blank, is_closed)
        after_blank = False
        index = end


def _block_end(lines: Sequence[Line], start: int) -> tuple[Kind, int, bool]:
    fence = opening_fence(lines[start].text)
    if fence is not None:
        return _fence_end(lines, start, fence)
    if _is_table(lines, start):
        end = start + 2
        while end < len(lines) and "|" in lines[end].text and not opening_fence(lines[end].text):
            end += 1
        return Kind.TABLE, end, True
    end = start + 1
    while end < len(lines) and lines[end].text.strip() and not _starts_block(lines, end):
        end += 1
    return Kind.TEXT, end, True


def _starts_block(lines: Sequence[Line], index: int) -> bool:
    return opening_fence(lines[index].text) is not None or _is_table(lines, index)


def _fence_end(lines: Sequence[Line], start: int, fence: Fence) -> tuple[Kind, int, bool]:
    for end in range(start + 1, len(lines)):
        if fence.is_left_by(lines[end].text):
            return Kind.FENCE, end, False
        if fence.is_closed_by(lines[end].text):
            return Kind.FENCE, end + 1, True
    return Kind.FENCE, len(lines), False


def _is_table(lines: Sequence[Line], index: int) -> bool:
    if index + 1 >= len(lines) or "|" not in lines[index].text:
        return False
    delimiters = lines[index + 1].text
    return "-" in delimiters and "|" in delimiters and bool(_DELIMITER_ROW.fullmatch(delimiters))
