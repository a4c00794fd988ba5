"""The tools about Liara: search_docs and read_page, over the document set `liara`.

A tool checks its arguments, asks one layer below, and hands the result to rendering.py.
"""

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from app.errors import DocumentNotFoundError, InvalidArgumentError, InvalidQueryError
from app.liara.corpus import LIARA_SET_ID
from app.library.library import DocumentLibrary
from app.retrieval.grounding import neutralise_line
from app.retrieval.pages import (
    Page,
    PageSection,
    find_page,
    find_section,
    nearest_pages,
    page_of,
    page_sections,
    page_text,
)
from app.retrieval.search import search
from app.server.metrics import Metrics
from app.server.rendering import (
    Corpus,
    PageView,
    assemble,
    outline,
    page_answer,
    page_line,
    page_list,
    search_text,
    source_line,
)

MAX_QUERY_CHARS = 300
MAX_HITS = 8
DEFAULT_HITS = 5
MAX_PAGE_CHARS = 8000
_NEAREST_TITLES = 5

_READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

_SEARCH_DOCS = """\
Search the documentation of Liara (liara.ir, an Iranian cloud platform: apps, databases, disks, \
domains, object storage, AI, mail, DNS). Use it first for any question about Liara, and again with \
other words when the first try misses.

Returns up to k numbered snippets, best first. Each begins with a line \
`[n] Title › Heading — URL`. Answer from the snippets and cite the URL; when a snippet is cut \
where it matters, call read_page with its URL.

When nothing matches well the answer says so and lists the nearest pages: reword once or twice, \
then say that the docs do not cover it. Do not answer from memory."""

_READ_PAGE = """\
Read one page of the Liara documentation as Markdown, by a URL that search_docs returned. Use it \
when a snippet is not enough: whole steps, whole config examples, all options.

Returns at most 8,000 characters, cut at a line, and how to read on (offset). A URL with #anchor, \
or `section`, starts at that heading. An unknown URL gives the nearest known pages: choose one of \
them or search; never invent a URL."""


def register(server: MCPServer[Any], library: DocumentLibrary, metrics: Metrics) -> None:
    """Add the Liara tools to a server."""
    tools = LiaraTools(library)
    server.add_tool(
        tools.search_docs,
        title="Search the Liara docs",
        description=_SEARCH_DOCS,
        annotations=_READ_ONLY,
        structured_output=False,
    )
    server.add_tool(
        tools.read_page,
        title="Read a page of the Liara docs",
        description=_READ_PAGE,
        annotations=_READ_ONLY,
        structured_output=False,
    )


class LiaraTools:
    """The tools, as the server calls them: plain functions, so each call runs in a thread."""

    def __init__(self, library: DocumentLibrary) -> None:
        """Answer from the set `liara` of `library`."""
        self._library = library

    def search_docs(
        self,
        query: Annotated[
            str,
            Field(
                description="What to look for, in Persian or English, at most 300 characters: "
                "the question, or key words, option names or an error message.",
                json_schema_extra={"maxLength": MAX_QUERY_CHARS, "minLength": 1},
            ),
        ],
        k: Annotated[
            int,
            Field(
                description="How many snippets to return; values outside of 1 to 8 are clamped.",
                json_schema_extra={"minimum": 1, "maximum": MAX_HITS},
            ),
        ] = DEFAULT_HITS,
    ) -> CallToolResult:
        """Search the set for a query."""
        query = query.strip()
        if len(query) > MAX_QUERY_CHARS:
            raise InvalidQueryError(
                f"query has {len(query)} characters; at most {MAX_QUERY_CHARS} are accepted. "
                "Shorten it to the key words; for a log use diagnose_log."
            )
        if not query:
            raise InvalidQueryError("query is empty: say what to look for.")
        corpus = self._corpus()
        result = search(corpus.index, query, top_k=min(max(k, 1), MAX_HITS))
        weak = [hit.chunk.page for hit in result.hits]
        nearest = [] if result.matched and weak else _nearest(corpus, query, weak)
        return corpus.result(search_text(corpus, result, nearest))

    def read_page(
        self,
        url: Annotated[
            str,
            Field(
                description="URL of the page as search_docs gives it, with or without #anchor; "
                "a path such as /paas/disks/about/ works too.",
            ),
        ],
        section: Annotated[
            str, Field(description="Heading or anchor to start at. Empty: the whole page.")
        ] = "",
        offset: Annotated[
            int,
            Field(
                description="Character of the page to start at, from the last answer's hint.",
                json_schema_extra={"minimum": 0},
            ),
        ] = 0,
    ) -> CallToolResult:
        """Return a slice of one page."""
        corpus = self._corpus()
        try:
            page, anchor = find_page(corpus.index, url)
        except DocumentNotFoundError as error:
            raise DocumentNotFoundError(_unknown_page(corpus, url)) from error
        sections = page_sections(corpus.index, page)
        chosen = find_section(sections, section or anchor)
        if section and chosen is None:
            raise InvalidArgumentError(_unknown_section(corpus, page, section, sections))
        return corpus.result(_page_answer(corpus, page, sections, chosen, anchor, max(offset, 0)))

    def _corpus(self) -> Corpus:
        return Corpus.current(self._library, LIARA_SET_ID)


def _nearest(corpus: Corpus, query: str, found: list[str]) -> list[Page]:
    """Return the pages of weak hits, then those whose title or URL looks like the query."""
    pages = [*(page_of(corpus.index, key) for key in found), *nearest_pages(corpus.index, query)]
    return list({page.key: page for page in pages}.values())[:_NEAREST_TITLES]


def _unknown_page(corpus: Corpus, url: str) -> str:
    return assemble(
        corpus,
        [
            f"No page of this documentation has the URL {neutralise_line(url)!r}. Nearest pages:",
        ],
        [page_list(nearest_pages(corpus.index, url))],
        ["Call read_page with one of these URLs, or search_docs.", source_line(corpus)],
    )


def _unknown_section(
    corpus: Corpus, page: Page, section: str, sections: tuple[PageSection, ...]
) -> str:
    return assemble(
        corpus,
        [f"This page has no section {neutralise_line(section, 80)!r}. Its sections:"],
        [f"{page_line(page)}\n{outline(sections, 2000) or '(none)'}"],
        ["Give one of these headings, or no section to read the page from its start."],
    )


def _page_answer(
    corpus: Corpus,
    page: Page,
    sections: tuple[PageSection, ...],
    chosen: PageSection | None,
    anchor: str,
    offset: int,
) -> str:
    text = page_text(corpus.index, page)
    start, limit = offset, len(text)
    if chosen is not None:
        # An offset in or behind the section reads on; one before it starts at its heading.
        start = max(chosen.start, offset)
        limit = chosen.end if start < chosen.end else limit
    if start >= len(text) and start > 0:
        raise InvalidArgumentError(
            f"offset {start} is behind the end: this page has {len(text)} characters."
        )
    notes = []
    if anchor and chosen is None:
        notes.append(f"The page has no section #{neutralise_line(anchor, 80)}: this is its start.")
    view = PageView(page, text, sections, chosen, start, limit)
    return page_answer(corpus, view, notes, max_chars=MAX_PAGE_CHARS)
