"""Whole pages: from a URL in any of its forms to a slice of the page's source, cut at a line.

The argument is only ever looked up among the pages of the index; it never names a file.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from urllib.parse import unquote, urljoin, urlsplit
from weakref import WeakKeyDictionary

from markdown_it import MarkdownIt
from rapidfuzz import fuzz, process

from app.errors import DocumentNotFoundError, InvalidArgumentError
from app.index.persian import normalize_letters
from app.index.snapshot import DocumentEntry, SearchIndex
from app.retrieval.fences import closing_fence, is_fence, open_fence

MAX_REFERENCE_CHARS = 500
NEAREST_LIMIT = 5
# Between two documents that share one page, for example a Persian and an English one.
_JOINT = "\n\n---\n\n"
_FRONT_MATTER = re.compile(r"---\n(?:[^\n]*\n){0,60}?---(?:\n|$)")
_EXPLICIT_ID = re.compile(r"\{\s*#([^\s{}#]{1,200})\s*\}\s*$")
# Links keep their text; tags, ids and emphasis go.
_MARKUP = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)|<[^<>]*>|\{\s*#[^{}]*\}\s*$|[*`]+|[ \t]#+$")
_MAX_HEADING_CHARS = 300
# A code span, which is left alone, or the beginning of a link's destination.
_RELATIVE_LINK = re.compile(r"(?P<ticks>`+)[^`]*(?P=ticks)(?!`)|\]\((?P<target>[^\s()<>]+)")
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\]{2}")
_WRAPPED = re.compile(r"^\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)$")
_SUFFIX = re.compile(r"\.(?:mdx?|html?|txt)$")
_HEADING_NEAR_END = re.compile(r"\n(?=#{1,6} )")
# A heading that begins in the last part of a slice had better begin the next one.
_HEADING_ZONE = 0.8
_SECTION_MIN_SCORE = 80
_MAX_FENCE_CHARS = 100


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document set; `key` is its URL or, without one, its path."""

    key: str
    url: str | None
    title: str
    documents: tuple[DocumentEntry, ...]


@dataclass(frozen=True, slots=True)
class PageSlice:
    """A part of a page's source: `text` stands at `start` of `total` characters.

    `end` is where reading goes on, `limit` the end of the section that was asked for, or of
    the page. A fence that the cut fell into is closed in `text`, and opened again at its start.
    """

    text: str
    start: int
    end: int
    limit: int
    total: int


@dataclass(frozen=True, slots=True)
class PageSection:
    """A heading of a page and the characters of the source that belong to it, subsections too."""

    heading: str
    anchor: str
    start: int
    end: int


def find_page(index: SearchIndex, reference: str) -> tuple[Page, str]:
    """Return the page that a URL, path or citation link names, and the anchor in it, if any.

    Raises:
        DocumentNotFoundError: The index has no such page.
    """
    target, _, anchor = _unwrapped(reference).partition("#")
    if target in index.documents:
        return page_of(index, index.documents[target].page), unquote(anchor)
    table = _page_table(index)
    host, key = _host_and_key(target)
    found = table.by_key.get(key)
    if found is None or (host and host not in table.hosts):
        raise DocumentNotFoundError(
            f"No page of this documentation has the URL {reference[:200]!r}."
        )
    return page_of(index, found), unquote(anchor)


def page_of(index: SearchIndex, key: str) -> Page:
    """Return the page of a key that the index gave out."""
    documents = index.documents_of_page(key)
    return Page(key, documents[0].url, documents[0].title, documents)


def nearest_pages(
    index: SearchIndex, reference: str, limit: int = NEAREST_LIMIT
) -> tuple[Page, ...]:
    """Return the pages whose URL or title is most like a reference that names none."""
    _, key = _host_and_key(_unwrapped(reference).partition("#")[0])
    wanted = _words(key) or normalize_letters(reference[:MAX_REFERENCE_CHARS])
    scored = [
        # The ratio of the paths tells pages apart that share most folders; titles are words.
        (fuzz.ratio(wanted, path) + fuzz.token_set_ratio(wanted, f"{path} {title}"), page)
        for page, (path, title) in _page_table(index).words.items()
    ]
    scored.sort(key=lambda item: (-item[0], item[1]))
    return tuple(page_of(index, page) for _, page in scored[:limit])


def page_text(index: SearchIndex, page: Page) -> str:
    """Return the whole source of a page, its documents one after the other."""
    return _JOINT.join(index.source(entry.path) for entry in page.documents)


def page_sections(index: SearchIndex, page: Page) -> tuple[PageSection, ...]:
    """Return the sections of a page, in order; without those that were left out of the index."""
    sections: list[PageSection] = []
    base = 0
    for entry in page.documents:
        text = index.source(entry.path)
        sections += _document_sections(index, entry, text, base)
        base += len(text) + len(_JOINT)
    return tuple(sections)


def find_section(sections: tuple[PageSection, ...], name: str) -> PageSection | None:
    """Return the section of a heading or anchor, written more or less as it stands in the page."""
    wanted = _plain(name.rpartition("›")[2])
    if not wanted:
        return None
    plain = [(_plain(section.heading), _plain(section.anchor)) for section in sections]
    for section, names in zip(sections, plain, strict=True):
        if wanted in names:
            return section
    for section, (heading, _) in zip(sections, plain, strict=True):
        if heading.startswith(wanted):
            return section
    best = process.extractOne(
        wanted,
        [heading for heading, _ in plain],
        scorer=fuzz.ratio,
        score_cutoff=_SECTION_MIN_SCORE,
    )
    return sections[best[2]] if best else None


def cut_page(text: str, *, start: int, limit: int, max_chars: int) -> PageSlice:
    """Return at most `max_chars` characters from `start`, cut at a line where one ends in time.

    Raises:
        InvalidArgumentError: `start` lies outside of the text.
    """
    if not 0 <= start < max(limit, 1):
        raise InvalidArgumentError(f"offset {start} is outside of this text: it ends at {limit}.")
    opening, _ = _open_fence(text[:start])
    budget = max_chars - (len(opening) + 1 if opening else 0)
    end = _cut_position(text, start, limit, budget)
    _, closing = _open_fence(_joined(opening, text[start:end]))
    if closing and end - start + len(closing) + 1 > budget:
        end = _cut_position(text, start, limit, budget - len(closing) - 1)
        _, closing = _open_fence(_joined(opening, text[start:end]))
    body = _joined(opening, text[start:end]).rstrip("\n")
    body += f"\n{closing}" if closing else ""
    return PageSlice(body, start, end, limit, len(text))


def absolute_links(text: str, base: str | None) -> str:
    """Return Markdown with relative links and images made absolute; code stays as it is."""
    if base is None or "](" not in text:
        return text
    lines = text.split("\n")
    fences: list[str] = []
    for number, line in enumerate(lines):
        if is_fence(line):
            fences.append(line)
        elif "](" in line and closing_fence(fences) is None:
            lines[number] = _RELATIVE_LINK.sub(lambda found: _joined_link(found, base), line)
    return "\n".join(lines)


def _joined_link(found: re.Match[str], base: str) -> str:
    target = found["target"]
    if target is None or _WITH_SCHEME.match(target):
        return found[0]
    try:
        return f"]({urljoin(base, target)}"
    except ValueError:
        return found[0]


def _unwrapped(reference: str) -> str:
    text = reference[:MAX_REFERENCE_CHARS].strip().lstrip("<\"'`").rstrip(">\"'`،؛.,; \t\n")
    wrapped = _WRAPPED.match(text)
    return wrapped["target"] if wrapped else text


def _host_and_key(target: str) -> tuple[str, str]:
    """Split a reference into its host, empty if it has none, and the key of its path."""
    try:
        parts = urlsplit(target if "//" in target[:10] else f"//{target.lstrip('/')}")
    except ValueError:
        return "?", ""
    if parts.scheme not in ("", "http", "https"):
        return "?", ""
    host, path = parts.netloc.casefold(), parts.path
    if "//" not in target[:10] and "." not in host.removesuffix(".md"):
        # No scheme and no dot in the first part: it is the first folder of a path.
        host, path = "", f"{parts.netloc}{parts.path}"
    return host.removesuffix(":443").removesuffix(":80"), _key(path)


def _key(path: str) -> str:
    folders = [part for part in unquote(unquote(path)).casefold().split("/") if part]
    while folders and folders[0] in ("public", "llms"):
        folders.pop(0)
    if folders:
        folders[-1] = _SUFFIX.sub("", folders[-1])
        if folders[-1] in ("index", "readme") and len(folders) > 1:
            folders.pop()
    return "/".join(folders)


@dataclass(frozen=True, slots=True)
class _PageTable:
    by_key: dict[str, str]
    words: dict[str, tuple[str, str]]
    hosts: frozenset[str]


# An index is immutable, so its table can be kept as long as the index itself.
_tables: WeakKeyDictionary[SearchIndex, _PageTable] = WeakKeyDictionary()


def _page_table(index: SearchIndex) -> _PageTable:
    table = _tables.get(index)
    if table is None:
        table = _tables[index] = _build_page_table(index)
    return table


def _build_page_table(index: SearchIndex) -> _PageTable:
    by_key: dict[str, str] = {}
    words: dict[str, tuple[str, str]] = {}
    hosts = set()
    for page in index.pages:
        parts = urlsplit(page)
        hosts.add(parts.netloc.casefold())
        key = _key(parts.path)
        by_key.setdefault(key, page)
        title = index.documents_of_page(page)[0].title
        words[page] = (_words(key), normalize_letters(title).casefold())
    return _PageTable(by_key, words, frozenset(hosts))


def _words(key: str) -> str:
    return normalize_letters(key).replace("/", " ").replace("-", " ").casefold()


def _document_sections(
    index: SearchIndex, entry: DocumentEntry, text: str, base: int
) -> list[PageSection]:
    # Not from the chunks: a short section shares the chunk of its neighbour.
    headings = [item for item in _headings(text) if item.text != entry.title]
    indexed = _indexed_lines(index, entry)
    seen: Counter[str] = Counter()
    sections = []
    firsts = [first for first, _ in indexed]
    lasts = list(accumulate((last for _, last in indexed), max))
    line_count = text.count("\n") + 1
    for heading, following in zip(headings, _followers(headings), strict=True):
        slug = _plain(heading.text)
        begun = bisect_right(firsts, following.line - 1 if following else line_count)
        # A list of all pages, as sites put it below each of theirs, is in no chunk.
        if begun and lasts[begun - 1] >= heading.line:
            sections.append(
                PageSection(
                    heading=heading.text,
                    anchor=heading.anchor or (f"{slug}{seen[slug]}" if seen[slug] else slug),
                    start=base + heading.start,
                    end=base + (following.start if following else len(text)),
                )
            )
        seen[slug] += 1
    return sections


def _followers(headings: Sequence["_Heading"]) -> list["_Heading | None"]:
    """Return for each heading the next one that is not below it, in one pass from the end."""
    followers: list[_Heading | None] = []
    nearest: list[_Heading] = []
    for heading in reversed(headings):
        while nearest and nearest[-1].level > heading.level:
            nearest.pop()
        followers.append(nearest[-1] if nearest else None)
        nearest.append(heading)
    return followers[::-1]


def _indexed_lines(index: SearchIndex, entry: DocumentEntry) -> list[tuple[int, int]]:
    chunks = map(index.chunk, entry.chunk_numbers)
    return sorted((chunk.start_line, chunk.end_line) for chunk in chunks)


@dataclass(frozen=True, slots=True)
class _Heading:
    level: int
    text: str
    anchor: str
    start: int
    line: int


def _headings(text: str) -> list[_Heading]:
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    front = _FRONT_MATTER.match(text)
    hidden = front.end() if front else 0
    body = re.sub(r"[^\n]", " ", text[:hidden]) + text[hidden:]
    tokens = _block_parser().parse(body)
    return [
        _Heading(
            level=int(token.tag[1]),
            text=" ".join(_MARKUP.sub(r"\1", inline.content).split())[:_MAX_HEADING_CHARS],
            anchor=explicit[1] if (explicit := _EXPLICIT_ID.search(inline.content)) else "",
            start=starts[token.map[0]],
            line=token.map[0] + 1,
        )
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]


@cache
def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser.disable("reference")


def _plain(text: str) -> str:
    folded = normalize_letters(unquote(text)).casefold()
    return "".join(char for char in folded if char.isalnum())


def _cut_position(text: str, start: int, limit: int, budget: int) -> int:
    end = start + budget
    if end >= limit:
        return limit
    headings = list(_HEADING_NEAR_END.finditer(text, start + int(budget * _HEADING_ZONE), end))
    if headings and closing_fence(text[: headings[-1].end()].split("\n")) is None:
        return headings[-1].end()
    newline = text.rfind("\n", start + budget // 2, end)
    if newline < 0:
        return end
    # A fence that has just been opened had better open in the next slice.
    line_start = text.rfind("\n", start + budget // 2, newline) + 1
    opens = is_fence(text[line_start:newline]) and closing_fence(
        text[start : newline + 1].split("\n")
    )
    return line_start if opens and line_start > start + budget // 2 else newline + 1


def _joined(opening: str, text: str) -> str:
    return f"{opening}\n{text}" if opening else text


def _open_fence(text: str) -> tuple[str, str]:
    """Return the lines that open and close the fence in which the text ends; empty for none."""
    fence = open_fence(text.split("\n"))
    return (fence.opening[:_MAX_FENCE_CHARS], fence.closing) if fence else ("", "")
