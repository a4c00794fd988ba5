"""The tools about Liara, over the document set `liara`.

A tool checks its arguments, asks one layer below, and hands the result to rendering.py or
liara_rendering.py. What it refuses is a sentence (DocsError, neutralised by mcp_server.py), or a
rendered answer with documents in it (ToolError, shown as it is).
"""

import json
from asyncio import gather
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any

from anyio.to_thread import run_sync
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from app.errors import DocumentNotFoundError, InvalidArgumentError, InvalidQueryError
from app.index.dense import DenseLeg
from app.liara.corpus import LIARA_SET_ID
from app.liara.diagnosis import diagnose
from app.liara.manifest import MAX_CONTENT_CHARS, validate_liara_json
from app.liara.platforms import PLATFORMS, Platform, alias_note, resolve_platform
from app.library.library import DocumentLibrary
from app.models import Hit, SearchResult
from app.retrieval.grounding import neutralise_line
from app.retrieval.pages import (
    Page,
    PageSection,
    find_page,
    find_section,
    nearest_pages,
    page_sections,
    page_text,
)
from app.retrieval.search import search
from app.server.liara_rendering import diagnosis_answer, manifest_answer
from app.server.platform_guide import NeedAnswer, platform_guide
from app.server.rendering import (
    Corpus,
    PageView,
    assemble,
    corpus_facts,
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
MAX_NEEDS = 10
MAX_NEED_CHARS = 80
HITS_A_NEED = 3
# More than are shown: those on the pages of the error class stand in for their beginnings.
HITS_AN_ERROR = 30

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


_PLATFORM_DOCS = """\
Everything needed to deploy one kind of app on Liara, in one answer: the platform's pages (getting \
started, deploy, environment variables, disks, domains, databases, troubleshooting), the complete \
liara.json reference (every key with type, default, allowed values and example) and one search for \
each need you state. Use it before you write or change a liara.json or prepare a deployment.

State what the project needs in `needs`, for example ["persistent uploads", "PostgreSQL", \
"cron job"]. Then write the file and check it with validate_liara_json. A platform that Liara does \
not have gives the nearest names."""

_DIAGNOSE_LOG = """\
Find the root cause in the log of a failed build, deployment or start on Liara: npm, pip, \
composer, dotnet, go and Docker errors, ports, memory, permissions, databases, 502 and other \
gateway errors. Use it first whenever the user shows a log or an error message.

Paste the log as it is; secrets are masked. The last 300 lines count. Returns the error signature, \
its class, the platform, what usually fixes it (English and Persian), and the pages about it. An \
unknown error is said to be unknown and searched by its own words: then look into the pages and \
the project before you name a cause."""

_VALIDATE_LIARA_JSON = """\
Check a liara.json before deploying: syntax (with line and column), unknown and misplaced keys \
with the nearest known one, types and allowed values, disk paths, cron syntax, ports, the health \
check, secrets in envs. Use it on every liara.json that you write or change, and when a deployment \
fails on its configuration.

Returns whether it is valid, each finding with JSON path, what is allowed and the page that says \
so, and for a valid file what the deployment will do. Mend errors and check again; warnings are \
for the user to decide."""


def register(server: MCPServer[Any], library: DocumentLibrary) -> None:
    """Add the Liara tools to a server."""
    tools = LiaraTools(library)
    described: list[tuple[Callable[..., CallToolResult | Awaitable[CallToolResult]], str, str]] = [
        (tools.search_docs, "Search the Liara docs", _SEARCH_DOCS),
        (tools.read_page, "Read a page of the Liara docs", _READ_PAGE),
        (tools.platform_docs, "Docs and liara.json reference of a platform", _PLATFORM_DOCS),
        (tools.diagnose_log, "Find the cause in a failed deployment's log", _DIAGNOSE_LOG),
        (tools.validate_liara_json, "Check a liara.json", _VALIDATE_LIARA_JSON),
    ]
    for tool, title, description in described:
        server.add_tool(
            tool,
            title=title,
            description=description,
            annotations=_READ_ONLY,
            structured_output=False,
        )
    server.resource(
        "liara://corpus",
        name="corpus",
        title="What the Liara tools answer from",
        description="Starter or official corpus, commit and date, counts, languages, state.",
        mime_type="application/json",
    )(tools.corpus)


class LiaraTools:
    """The tools, as the server calls them.

    Plain functions run in a thread. Those that search wait for the query's vector first and go
    into a thread themselves: no thread waits for an embedding model.
    """

    def __init__(self, library: DocumentLibrary) -> None:
        """Answer from the set `liara` of `library`."""
        self._library = library

    async def search_docs(
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
        dense = await self._dense(corpus, query)

        def answer() -> CallToolResult:
            result = search(corpus.index, query, top_k=min(max(k, 1), MAX_HITS), dense=dense)
            nearest = () if result.hits else nearest_pages(corpus.index, query)
            return corpus.result(search_text(corpus, result, nearest))

        return await run_sync(answer)

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
            raise ToolError(_unknown_page(corpus, url)) from error
        sections = page_sections(corpus.index, page)
        chosen = find_section(sections, section or anchor)
        if section and chosen is None:
            raise ToolError(_unknown_section(corpus, page, section, sections))
        return corpus.result(_page_answer(corpus, page, sections, chosen, anchor, max(offset, 0)))

    async def platform_docs(
        self,
        platform: Annotated[
            str,
            Field(
                description="Platform of the app. Names of frameworks that run on it, such as "
                "nestjs, fastapi or asp.net, are understood.",
                json_schema_extra={"enum": list(PLATFORMS)},
            ),
        ],
        needs: Annotated[
            list[str],
            Field(
                description="What the project needs, up to 10 items of up to 80 characters, in "
                "Persian or English; each is searched for.",
                json_schema_extra={"maxItems": MAX_NEEDS},
            ),
        ] = [],  # noqa: B006  (pydantic copies it, and nothing here changes it)
    ) -> CallToolResult:
        """Return the pages, the reference and a search for each need."""
        found = resolve_platform(platform)
        corpus = self._corpus()
        wanted, notes = _needs(needs)
        queries = [_need_query(need, found) for need in wanted]
        legs = await gather(*(self._dense(corpus, query) for query in queries))

        def answer() -> CallToolResult:
            answers = [
                NeedAnswer(need, _search_need(corpus, query, found, leg))
                for need, query, leg in zip(wanted, queries, legs, strict=True)
            ]
            return corpus.result(
                platform_guide(corpus, found, alias_note(platform), answers, notes)
            )

        return await run_sync(answer)

    async def diagnose_log(
        self,
        log: Annotated[
            str,
            Field(
                description="The log as it was printed, up to 20,000 characters; of a longer one "
                "the end is kept."
            ),
        ],
    ) -> CallToolResult:
        """Name the root cause of a failure and the pages about it."""
        if not log.strip():
            raise InvalidArgumentError("log is empty: paste the output of the failed step.")
        diagnosis = await run_sync(diagnose, log)
        corpus = self._corpus()
        if not diagnosis.found_error:
            return corpus.result(diagnosis_answer(corpus, diagnosis, None))
        dense = await self._dense(corpus, diagnosis.query)

        def answer() -> CallToolResult:
            found = _search_error(corpus, diagnosis.query, dense)
            return corpus.result(diagnosis_answer(corpus, diagnosis, found))

        return await run_sync(answer)

    def validate_liara_json(
        self,
        content: Annotated[
            str,
            Field(
                description="The text of the liara.json, as it is, at most 20,000 characters.",
                json_schema_extra={"maxLength": MAX_CONTENT_CHARS},
            ),
        ],
        platform: Annotated[
            str, Field(description="Platform of the app, if the file does not name it.")
        ] = "",
    ) -> CallToolResult:
        """Judge a liara.json."""
        if not content.strip():
            raise InvalidArgumentError("content is empty: send the text of the liara.json.")
        named = resolve_platform(platform).name if platform.strip() else None
        report = validate_liara_json(content, named)
        corpus = self._corpus()
        return corpus.result(manifest_answer(corpus, report))

    def corpus(self) -> str:
        """Describe the index behind the answers, as JSON."""
        corpus = self._corpus()
        return json.dumps(corpus_facts(corpus), ensure_ascii=False, indent=1)

    def _corpus(self) -> Corpus:
        return Corpus.current(self._library, LIARA_SET_ID)

    async def _dense(self, corpus: Corpus, query: str) -> DenseLeg:
        return await self._library.dense_leg(LIARA_SET_ID, corpus.index, query)


def _needs(needs: list[str]) -> tuple[list[str], list[str]]:
    """Return the needs that are searched for, and notes on those that are not or are cut."""
    stated = list(dict.fromkeys(need.strip() for need in needs if need.strip()))
    notes = []
    if dropped := stated[MAX_NEEDS:]:
        shown = "; ".join(neutralise_line(need, MAX_NEED_CHARS) for need in dropped[:MAX_NEEDS])
        more = f" and {len(dropped) - MAX_NEEDS} more" if len(dropped) > MAX_NEEDS else ""
        notes.append(f"Only {MAX_NEEDS} needs are searched for. Dropped: {shown}{more}.")
    kept = stated[:MAX_NEEDS]
    if any(len(need) > MAX_NEED_CHARS for need in kept):
        notes.append(f"Needs are cut to {MAX_NEED_CHARS} characters.")
    return [need[:MAX_NEED_CHARS] for need in kept], notes


def _need_query(need: str, platform: Platform) -> str:
    # The platform's name draws its own pages up; a page on the need alone still wins.
    named = platform.title.casefold() in need.casefold()
    return need if named else f"{need} {platform.title}"


def _search_need(
    corpus: Corpus, query: str, platform: Platform, dense: DenseLeg
) -> SearchResult | None:
    try:
        result = search(corpus.index, query, top_k=2 * HITS_A_NEED, max_per_page=1, dense=dense)
    except InvalidQueryError:
        return None
    return replace(result, hits=_own_first(result.hits, platform)[:HITS_A_NEED])


def _own_first(hits: tuple[Hit, ...], platform: Platform) -> tuple[Hit, ...]:
    """Move hits from other platforms' pages down by a few places; they may still be the best."""
    folders = {
        item.name: item.docs_prefix.rstrip("/").rpartition("/")[2] for item in PLATFORMS.values()
    }
    own = folders.pop(platform.name)
    others = set(folders.values())

    def place(item: tuple[int, Hit]) -> int:
        position, hit = item
        parts = set(hit.chunk.page.split("/"))
        return position + (HITS_A_NEED if parts & others and own not in parts else 0)

    return tuple(hit for _, hit in sorted(enumerate(hits), key=place))


def _folder(platform: Platform) -> str:
    return platform.docs_prefix.rstrip("/").rpartition("/")[2]


def _search_error(corpus: Corpus, query: str, dense: DenseLeg) -> SearchResult | None:
    try:
        return search(corpus.index, query, top_k=HITS_AN_ERROR, max_per_page=1, dense=dense)
    except InvalidQueryError:
        return None


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
