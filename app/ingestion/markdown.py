"""One source file -> Document: title, URL, language and the sections under its headings.

Headings and fences come from a CommonMark parser; the text of a section is the source text,
line for line, without tags, comments and module lines.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import PurePosixPath

from app.errors import UnusableFileError
from app.ingestion.front_matter import read_front_matter
from app.ingestion.language import guess_language, primary_language
from app.ingestion.links import PageAddress, absolute_links, page_address
from app.ingestion.prose import clean_prose, closed_components, split_code_spans
from app.ingestion.structure import DROPPED, PROSE, Heading, one_line, scan
from app.models import Document, Section

MARKDOWN_VERSION = 3
"""Raised whenever the same bytes would give another Document."""

_ORIGINAL_LINK = re.compile(r"Original link:\s*(\S+)\s*", re.I)
_NAVIGATION_LINK = re.compile(
    r"\[[^\[\]]*\]\(\s*[^()\s]*(?:all-links|llms)[\w.-]*\.(?:txt|md)\s*\)"
)
_HTML_TITLE = re.compile(r"<h1\b[^<>]*>([^<>]{1,300})</h1>", re.I)
# Embedded images: long runs that nobody searches for.
_DATA_URI = re.compile(r"(data:[\w.+-]{1,40}/[\w.+-]{1,60};base64,)[A-Za-z0-9+/=]{100,}")
_WORD = re.compile(r"\w")
_INDEX_NAMES = ("index", "readme")


def parse_document(
    path: str, raw: bytes, *, base_url: str | None = None, title_from: str = "auto"
) -> Document:
    """Parse the bytes of one file.

    Raises:
        UnusableFileError: The bytes are empty, binary or not UTF-8, or hold no text.
    """
    text = decode(raw)
    source = text.split("\n")
    lines = list(source)
    front = read_front_matter(lines)
    lines[: front.line_count] = [""] * front.line_count
    own_url = front.fields.get("url") or _take_original_link(lines)
    address = page_address(path, own_url, base_url)
    headings, kinds = scan(lines, path.lower().endswith(".mdx"))
    title, title_heading = _title(path, front.fields.get("title"), headings, lines, title_from)
    _clean(lines, kinds, address)
    sections = tuple(_sections(lines, headings, title_heading))
    if not any(_WORD.search(section.text) for section in sections):
        raise UnusableFileError("no text besides headings")
    prose = "\n".join(line for line, kind in zip(lines, kinds, strict=True) if kind == PROSE)
    declared = front.fields.get("lang") or front.fields.get("language") or ""
    return Document(
        path=path,
        url=address.url,
        title=title,
        lang=primary_language(declared) or guess_language(prose if _WORD.search(prose) else text),
        text="\n".join(source),
        sections=sections,
    )


def decode(raw: bytes) -> str:
    """Return the text of a file without byte-order mark and with \\n line ends."""
    if not raw.strip():
        raise UnusableFileError("empty")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnusableFileError("not UTF-8")
    if b"\0" in raw:
        raise UnusableFileError("binary")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnusableFileError(f"not UTF-8 (byte {error.start})") from None
    if not text.strip():
        raise UnusableFileError("empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _take_original_link(lines: list[str]) -> str | None:
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    match = _ORIGINAL_LINK.fullmatch(lines[first]) if first is not None else None
    if match is None or first is None:
        return None
    lines[first] = ""
    return match.group(1)


def _title(
    path: str, named: str | None, headings: list[Heading], lines: list[str], title_from: str
) -> tuple[str, Heading | None]:
    """Return the title, and the heading that is the title and so opens no section of its own."""
    top = next((heading for heading in headings if heading.level == 1), None)
    if top is None and headings and title_from == "heading":
        top = headings[0]
    if title_from == "filename":
        title = ""
    elif title_from == "auto" and named and _WORD.search(named):
        title = one_line(named)
    else:
        title = top.text if top else _html_title(lines)
    title = title or _file_title(path)
    is_title = top is not None and top is headings[0] and top.text.casefold() == title.casefold()
    return title, top if is_title else None


def _html_title(lines: list[str]) -> str:
    match = _HTML_TITLE.search("\n".join(lines[:40])[:4_000])
    return one_line(match.group(1)) if match else ""


def _file_title(path: str) -> str:
    file = PurePosixPath(path)
    is_index = file.stem.lower() in _INDEX_NAMES and file.parent.name
    return one_line(file.parent.name if is_index else file.stem)


def _clean(lines: list[str], kinds: bytearray, address: PageAddress) -> None:
    """Clean the prose lines and blank the dropped ones, in place."""
    closed = closed_components("\n".join(lines))
    for kind, group in groupby(range(len(lines)), key=kinds.__getitem__):
        run = list(group)
        first, end = run[0], run[-1] + 1
        if kind != DROPPED:
            lines[first:end] = [_DATA_URI.sub(r"\1…", line) for line in lines[first:end]]
        if kind == PROSE:
            prose = clean_prose("\n".join(lines[first:end]), closed)
            lines[first:end] = _with_absolute_links(prose, address).split("\n")
        elif kind == DROPPED:
            lines[first:end] = [""] * (end - first)


def _with_absolute_links(prose: str, address: PageAddress) -> str:
    if address.url is None or "]" not in prose:
        return prose
    return "".join(
        piece if is_code else absolute_links(piece, address)
        for paragraph in re.split(r"(\n[ \t]*\n)", prose)
        for piece, is_code in split_code_spans(paragraph)
    )


def _sections(
    lines: list[str], headings: list[Heading], title_heading: Heading | None
) -> Iterator[Section]:
    """Yield the text before the first heading, then one section a heading, in file order."""
    starts = [heading.first_line for heading in headings] + [len(lines)]
    yield from _section(lines, (), "", 0, 0, starts[0])
    open_headings: list[Heading] = []
    for heading, end in zip(headings, starts[1:], strict=True):
        while open_headings and open_headings[-1].level >= heading.level:
            open_headings.pop()
        open_headings.append(heading)
        path = tuple(opened.text for opened in open_headings if opened is not title_heading)
        anchor = "" if heading is title_heading else heading.anchor
        yield from _section(lines, path, anchor, heading.first_line, heading.body_line, end)


def _section(
    lines: list[str], path: tuple[str, ...], anchor: str, heading_line: int, start: int, end: int
) -> Iterator[Section]:
    """Yield the section of lines[start:end], unless nothing of it is worth keeping."""
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[start:end])
    if not text:
        if path:
            yield Section(path, anchor, heading_line + 1, heading_line + 1, "")
        return
    if not _is_navigation(text):
        first = heading_line if path else start
        yield Section(path, anchor, first + 1, end, text)


def _is_navigation(text: str) -> bool:
    """Tell a section that only links to a list of all pages from one with content."""
    rest, links = _NAVIGATION_LINK.subn("", text)
    return bool(links) and not _WORD.search(rest)
