"""Results -> the text that a model reads.

Everything from documents passes through retrieval/grounding.py here and nowhere else; every
answer has one envelope, a hard cap, and a line that says which corpus it comes from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mcp_types import CallToolResult, TextContent

from app import __version__
from app.errors import DocumentNotFoundError
from app.index.snapshot import Manifest, SearchIndex
from app.library.library import DocumentLibrary
from app.library.status import SetState, revision
from app.library.vectors import VectorState, VectorStatus
from app.models import Hit, SearchResult
from app.retrieval.grounding import (
    envelope,
    neutralise_line,
    neutralise_sentence,
    neutralise_text,
    neutralise_url,
)
from app.retrieval.pages import (
    Page,
    PageSection,
    PageSlice,
    absolute_links,
    cut_page,
    find_page,
)
from app.retrieval.snippets import snippet

# Clients cut or refuse answers from about 25,000 tokens on; Persian costs up to a token a letter.
MAX_ANSWER_CHARS = 24_000
SNIPPET_CHARS = 600
MIN_EXCERPT_CHARS = 150
"""Less of a page than this says nothing."""
_REASON_CHARS = 200
_SHORT_COMMIT = 12


@dataclass(frozen=True, slots=True)
class Corpus:
    """The index that one answer comes from, and what stands behind it."""

    index: SearchIndex
    state: SetState
    reason: str | None
    dense: VectorStatus | None = None
    checked_at: str | None = None

    @classmethod
    def current(cls, library: DocumentLibrary, set_id: str) -> "Corpus":
        """Take the index of a set as it is served now.

        Raises:
            EmptySetError: The set has no index yet.
        """
        index, status = library.index(set_id), library.status(set_id)
        dense = library.vector_status(set_id)
        return cls(index, status.state, status.reason, dense, status.checked_at)

    @property
    def manifest(self) -> Manifest:
        """What the index holds and where it comes from."""
        return self.index.manifest

    @property
    def revision(self) -> str:
        """The name of what the index holds, as it stands in envelopes and in `_meta`."""
        return revision(self.manifest)

    @property
    def meta(self) -> dict[str, Any]:
        """The machine-readable source of an answer, for `_meta`."""
        return {
            "set": self.manifest.set_id,
            "revision": self.revision,
            "state": str(self.state),
            "corpus": "starter" if self.manifest.starter else "official",
            # Starter pages may lie in a checkout of this program: its commit is not theirs.
            "commit": None if self.manifest.starter else self.manifest.rev,
            "commit_date": None if self.manifest.starter else self.manifest.rev_date,
            "built_at": self.manifest.built_at,
            "checked_at": self.checked_at,
        }

    def result(self, text: str) -> CallToolResult:
        """Return the answer of a tool: one text, and its source in `_meta`."""
        return CallToolResult(content=[TextContent(type="text", text=text)], _meta=self.meta)

    def envelope(self, body: str) -> str:
        """Wrap neutralised document text."""
        return envelope(body, set_id=self.manifest.set_id, rev=self.revision)


def source_line(corpus: Corpus, now: datetime | None = None) -> str:
    """Say which corpus an answer comes from, of what date, and whether it is up to date."""
    now = now or datetime.now(UTC)
    manifest = corpus.manifest
    why = f": {neutralise_sentence(corpus.reason, _REASON_CHARS)}" if corpus.reason else ""
    if manifest.starter:
        return (
            "Corpus: starter pages, short summaries written for this server; each URL is the "
            f"official page that says more. Built {_dated(manifest.built_at, now)}. "
            f"State: {corpus.state}{why}."
        )
    where = "a local copy"
    if manifest.rev:
        dated = f" of {_dated(manifest.rev_date, now)}" if manifest.rev_date else ""
        where = f"commit {manifest.rev[:_SHORT_COMMIT]}{dated}"
    where += f", last checked {_dated(corpus.checked_at or manifest.built_at, now)}"
    return f"Corpus: official Liara docs, {where}. State: {corpus.state}{why}."


def corpus_facts(corpus: Corpus, now: datetime | None = None) -> dict[str, Any]:
    """Return what an index holds and how old it is; no folder of this machine is named."""
    manifest = corpus.manifest
    now = now or datetime.now(UTC)
    return corpus.meta | {
        "reason": corpus.reason and neutralise_sentence(corpus.reason),
        "source": neutralise_url(manifest.source),
        "commit_age_days": age_in_days(corpus.meta["commit_date"], now),
        "built_age_days": age_in_days(manifest.built_at, now),
        "pages": len(corpus.index.pages),
        "files": manifest.files,
        "chunks": len(corpus.index),
        "languages": manifest.languages,
        "skipped": len(manifest.skipped),
        "dense_search": takes_part(corpus.dense),
        "dense": dense_report(corpus.dense),
        "version": __version__,
    }


def config_error(library: DocumentLibrary) -> str | None:
    """Say that an edit of the config is not in use; why stays in the log, with its file names."""
    if library.config_error is None:
        return None
    return "the edited config is not valid; the one before it is in use"


def takes_part(dense: VectorStatus | None) -> bool:
    """Whether dense search takes part in answers, as far as is known."""
    return dense is not None and dense.state is VectorState.READY and dense.reason is None


def dense_report(dense: VectorStatus | None) -> dict[str, Any] | None:
    """Describe the dense leg of a set, as /healthz and list_docs show it; None without one."""
    if dense is None:
        return None
    report: dict[str, Any] = {
        "model": dense.model,
        "state": str(dense.state),
        "reason": dense.reason and str(dense.reason),
        "message": dense.message,
    }
    if dense.state is VectorState.BUILDING:
        report |= {"done": dense.done, "total": dense.total}
    return report


def hit_header(hit: Hit) -> str:
    """Return the line that a hit's citation number is found by."""
    chunk = hit.chunk
    headings = [heading for heading in chunk.heading_path if heading != chunk.title]
    label = neutralise_line(" › ".join((chunk.title, *headings))) or "Untitled"
    return f"[{hit.number}] {label} — {_address(chunk.url, chunk.anchor, chunk.path)}"


def hit_block(hit: Hit, terms: frozenset[str], max_chars: int = SNIPPET_CHARS) -> str:
    """Return a hit as its header line and the snippet around the match."""
    text = neutralise_text(snippet(hit.chunk.text, terms, max_chars)).strip("\n")
    return f"{hit_header(hit)}\n{text[:max_chars]}"


def page_line(page: Page) -> str:
    """Return a page as its title and URL, without a citation number."""
    return f"{neutralise_line(page.title) or 'Untitled'} — {_address(page.url, '', page.key)}"


def page_list(pages: Sequence[Page]) -> str:
    """Return pages as a list, one a line."""
    return "\n".join(f"- {page_line(page)}" for page in pages)


def outline(sections: Sequence[PageSection], max_chars: int = 600) -> str:
    """Return the headings of a page on one line, as many as fit."""
    shown: list[str] = []
    for section in sections:
        heading = neutralise_line(section.heading, 80)
        if sum(map(len, shown)) + 3 * len(shown) + len(heading) > max_chars - 2:
            return " | ".join([*shown, "…"])
        shown.append(heading)
    return " | ".join(shown)


def known_pages(corpus: Corpus, urls: Sequence[str]) -> list[Page]:
    """Return the pages of the index among URLs that may be missing from it."""
    pages = []
    for url in urls:
        try:
            pages.append(find_page(corpus.index, url)[0])
        except DocumentNotFoundError:
            continue
    return pages


def excerpt(corpus: Corpus, page: Page, max_chars: int) -> str:
    """Return a page as a numbered header and the beginning of its text."""
    entry = page.documents[0]
    first = Hit(number=entry.first_chunk + 1, chunk=corpus.index.chunk(entry.first_chunk), score=0)
    header = hit_header(first)
    room = max_chars - len(header) - 8
    if room < MIN_EXCERPT_CHARS:
        return header
    pieces: list[str] = []
    for number in entry.chunk_numbers:
        chunk = corpus.index.chunk(number)
        heading = f"**{chunk.heading_path[-1]}**\n" if chunk.heading_path and pieces else ""
        pieces.append(heading + chunk.text)
        if sum(map(len, pieces)) > room:
            break
    text = "\n\n".join(pieces)
    cut = cut_page(text, start=0, limit=len(text), max_chars=room)
    more = "\n…" if cut.end < len(text) or len(pieces) < entry.chunk_count else ""
    return f"{header}\n{neutralise_text(cut.text)[:room]}{more}"


def search_text(corpus: Corpus, result: SearchResult, nearest: Sequence[Page]) -> str:
    """Return the answer of a search: numbered snippets, or the nearest titles and what to try."""
    head = [source_line(corpus), *degraded_lines(result)]
    if result.matched and result.hits:
        blocks = [hit_block(hit, result.terms) for hit in result.hits]
        tail = (
            "Cite the URL of what you use. A snippet is a part of its page: "
            "read_page(url=…) shows the rest."
        )
        return assemble(corpus, head, blocks, [tail])
    head.append("Nothing in this documentation matches the query well. Nearest pages:")
    tail = (
        "Try other words (Persian and English both work), fewer words, or the exact error message "
        "or option name. If that finds nothing either, say that the docs do not cover it."
    )
    titles = "\n".join(hit_header(hit) for hit in _one_a_page(result.hits))
    return assemble(corpus, head, [titles or page_list(nearest) or "(none)"], [tail])


def _one_a_page(hits: Sequence[Hit]) -> list[Hit]:
    return list({hit.chunk.page: hit for hit in reversed(hits)}.values())[::-1]


@dataclass(frozen=True, slots=True)
class PageView:
    """What of a page is asked for: characters `start` to `limit` of `text`."""

    page: Page
    text: str
    sections: Sequence[PageSection]
    chosen: PageSection | None
    start: int
    limit: int


def page_answer(corpus: Corpus, view: PageView, notes: Sequence[str], *, max_chars: int) -> str:
    """Return a slice of a page and how to read on, `max_chars` in all at most."""
    head = [source_line(corpus), *notes]
    title = page_line(view.page)
    if view.limit - view.start > max_chars // 2 and view.sections:
        title += f"\nSections: {outline(view.sections)}"
    # The longest hint that this page can need is reserved before the text is cut.
    hints = [_read_on(view, PageSlice("", view.start, view.limit, view.limit + 1, len(view.text)))]
    room = max_chars - len(assemble(corpus, head, [title, "", ""], hints)) - 20
    piece = cut_page(view.text, start=view.start, limit=view.limit, max_chars=room)
    shown = _readable(view, piece)
    budget = room
    while len(shown) > room:
        # Absolute links are longer than the relative ones of the source.
        budget = budget * room // len(shown) - 1
        piece = cut_page(view.text, start=view.start, limit=view.limit, max_chars=budget)
        shown = _readable(view, piece)
    blocks = [title, shown] if shown.strip() else [title]
    return assemble(corpus, head, blocks, [_read_on(view, piece)])


def _readable(view: PageView, piece: PageSlice) -> str:
    return neutralise_text(absolute_links(piece.text, view.page.url))


def _read_on(view: PageView, piece: PageSlice) -> str:
    place = f"Characters {piece.start} to {piece.end} of {piece.total}."
    if piece.end >= piece.limit:
        end = "end of the section" if piece.limit < piece.total else "end of the page"
        more = f" Read on after it with offset={piece.end}." if piece.limit < piece.total else ""
        return f"{place} This is the {end}.{more}"
    url = neutralise_url(view.page.url) if view.page.url else None
    address = url or neutralise_line(view.page.key)
    heading = neutralise_line(view.chosen.heading, 80).replace('"', "'") if view.chosen else ""
    section = f', section="{heading}"' if heading else ""
    return f'{place} Read on: read_page(url="{address}"{section}, offset={piece.end})'


def degraded_lines(result: SearchResult) -> list[str]:
    """Return the line that says which part of the search did not take part, if one did not."""
    return [f"degraded: {neutralise_line(result.degraded)}"] if result.degraded else []


def assemble(
    corpus: Corpus,
    head: Sequence[str],
    blocks: Sequence[str],
    tail: Sequence[str],
    *,
    max_chars: int = MAX_ANSWER_CHARS,
    left_out: str = "Ask for less at a time to see the rest.",
) -> str:
    """Join our own lines and the enveloped blocks into one answer of at most `max_chars`.

    Blocks that no longer fit are left out, and `left_out` says how to get at them.
    """
    before = "\n".join(head) + "\n"
    after = "\n" + "\n".join(tail) if tail else ""
    note = f"\n[answer cut: {{}} of {len(blocks)} parts left out. {left_out}]"
    room = max_chars - len(before) - len(after) - len(note) - len(corpus.envelope("")) - 8
    kept: list[str] = []
    for block in blocks:
        if len(block) + 2 > room:
            break
        kept.append(block)
        room -= len(block) + 2
    missing = len(blocks) - len(kept)
    cut = note.format(missing) if missing else ""
    return f"{before}{corpus.envelope(chr(10).join(_spaced(kept)))}{cut}{after}"


def _spaced(blocks: Sequence[str]) -> list[str]:
    return [line for block in blocks for line in (block, "")][:-1]


def _address(url: str | None, anchor: str, path: str) -> str:
    shown = neutralise_url(url) if url else None
    if shown is None:
        return neutralise_line(path)
    return (neutralise_url(f"{shown}#{anchor}") if anchor else None) or shown


def _dated(moment: str, now: datetime) -> str:
    """Return the day of an ISO 8601 moment and how long ago it was."""
    days = age_in_days(moment, now)
    if days is None:
        return neutralise_line(moment, 40)
    age = "today" if days == 0 else "1 day old" if days == 1 else f"{days} days old"
    return f"{moment[:10]} ({age})"


def age_in_days(moment: str | None, now: datetime | None = None) -> int | None:
    """Return how many whole days ago an ISO 8601 moment was; None for anything else."""
    if moment is None:
        return None
    now = now or datetime.now(UTC)
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return max((now - then.replace(tzinfo=then.tzinfo or UTC)).days, 0)
