"""The structure of a Markdown text: its headings, and what each of its lines is.

Comes from a CommonMark parser that leaves HTML and JSX tags to be read as prose.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from app.ingestion.anchors import AnchorMaker, split_explicit_id
from app.ingestion.prose import clean_prose, closed_components

MAX_HEADING_CHARS = 300

PROSE, CODE, DROPPED = 0, 1, 2

# A closing fence with something stuck to it closes nothing: code then runs on to the end.
_SPOILT_CLOSING = re.compile(r"[ ]{0,3}(`{3,}|~{3,})[ \t]*[^\w\s`~][^`]*")
_MAX_MENDED = 8
_WORD = re.compile(r"\w")
# Raw HTML that hides its content from a Markdown reader; other HTML is prose with tags around.
_RAW_HTML = (
    (
        re.compile(r"<(?:script|style|textarea)(?=[\s>]|$)", re.I),
        re.compile(r"</(?:script|style|textarea)>", re.I),
    ),
    (re.compile(r"<pre(?=[\s>]|$)", re.I), re.compile(r"</pre>", re.I)),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<![A-Z]"), re.compile(r">")),
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, its anchor and its place; lines count from 0."""

    level: int
    text: str
    anchor: str
    first_line: int
    body_line: int  # the first line after the heading


def scan(lines: list[str], is_mdx: bool) -> tuple[list[Heading], bytearray]:
    """Return the headings between the blocks, and for each line what it is."""
    tokens = _parser(is_mdx).parse("\n".join(lines))
    for _ in range(_MAX_MENDED):
        if not _mend_fence(lines, tokens):
            break
        tokens = _parser(is_mdx).parse("\n".join(lines))
    kinds = bytearray(len(lines))
    headings: list[Heading] = []
    anchors = AnchorMaker()
    for index, token in enumerate(tokens):
        if token.map is None:
            continue
        first, end = token.map[0], min(token.map[1], len(lines))
        if token.type in ("fence", "code_block"):
            kinds[first:end] = bytes([CODE]) * (end - first)
        elif token.type == "html_block":
            kind = CODE if token.content.lstrip()[:4].lower() == "<pre" else DROPPED
            kinds[first:end] = bytes([kind]) * (end - first)
        elif token.type == "heading_open":
            text, explicit = _heading_text(tokens[index + 1].content)
            # Headings in lists and quotes take an anchor on the site, but open no section.
            anchor = explicit or anchors.anchor(text)
            if token.level == 0 and _WORD.search(text):
                headings.append(Heading(int(token.tag[1]), text, anchor, first, end))
    return headings, kinds


def _mend_fence(lines: list[str], tokens: list[Token]) -> bool:
    """Clear a spoilt closing line of a fence that is never closed; True if there was one."""
    last = tokens[-1] if tokens else None
    if last is None or last.type != "fence" or last.map is None:
        return False
    first, end = last.map[0], min(last.map[1], len(lines))
    if end - first > 1 and lines[end - 1].strip().startswith(last.markup):
        return False
    for number in range(first + 1, end):
        match = _SPOILT_CLOSING.fullmatch(lines[number])
        if match and match.group(1).startswith(last.markup):
            lines[number] = match.group(1)
            return True
    return False


@lru_cache(maxsize=2)
def _parser(is_mdx: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.at("html_block", _raw_html_block, {"alt": ["paragraph", "blockquote"]})
    parser.disable("reference")
    if is_mdx:
        # MDX has no indented code: children of components are indented at will.
        parser.disable("code")
    return parser


def _raw_html_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    if state.is_code_block(start_line):
        return False
    opening = _line_of(state, start_line)
    if not opening.startswith("<"):
        return False
    for number, (start, end) in enumerate(_RAW_HTML):
        match = start.match(opening)
        unclosed = f"unclosed {number} {end_line}"
        if match is None or unclosed in state.env:
            continue
        if silent:
            return True
        for line in range(start_line, end_line):
            if end.search(_line_of(state, line), match.end() if line == start_line else 0):
                state.line = line + 1
                token = state.push("html_block", "", 0)
                token.map = [start_line, state.line]
                token.content = opening
                return True
        # An unclosed tag hides nothing: the rest of the page is still read.
        state.env[unclosed] = True
    return False


def _line_of(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


@lru_cache(maxsize=1)
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"maxNesting": 10})


def _heading_text(content: str) -> tuple[str, str | None]:
    """Return the words of a heading without markup, and the id that its author gave it."""
    content, explicit = split_explicit_id(content[: 2 * MAX_HEADING_CHARS])
    content = clean_prose(content, closed_components(content))
    inline = _inline_parser().parseInline(content)
    words = "".join(_plain(inline[0].children or [])) if inline else ""
    return one_line(words), explicit


def _plain(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("text", "code_inline", "html_inline"):
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.children:
            yield from _plain(token.children)


def one_line(text: str) -> str:
    """Return text as one line, NFC, no longer than a heading may be."""
    return unicodedata.normalize("NFC", " ".join(text.split()))[:MAX_HEADING_CHARS]
