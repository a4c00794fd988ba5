"""Answers keep to their shape and their cap, whatever the documents say."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.index.builder import IndexedDocument, build_index
from app.index.snapshot import Manifest, SearchIndex
from app.library.status import SetState
from app.models import Chunk, Hit, SearchResult
from app.retrieval.pages import PageSection
from app.server.rendering import (
    MAX_ANSWER_CHARS,
    Corpus,
    assemble,
    corpus_facts,
    hit_block,
    hit_header,
    outline,
    search_text,
    source_line,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MANIFEST = Manifest(
    format=1,
    analyzer=1,
    set_id="liara",
    fingerprint="f" * 32,
    recipe="r",
    origin="git",
    root="/var/lib/docs",
    source="https://github.com/liara-cloud/docs.git",
    rev="0123456789abcdef0123456789abcdef01234567",
    rev_date="2026-11-20T08:00:00+00:00",
    built_at="2026-11-29T10:00:00+00:00",
    files=1,
    chunks=1,
    layers={},
    languages={"fa": 1},
    skipped=(),
    starter=False,
    stat_fingerprint=None,
)
CHUNK = Chunk(
    path="paas/disks.md",
    url="https://docs.liara.ir/paas/disks/about/",
    title="دیسک‌ها",
    heading_path=("ساخت دیسک", "با CLI"),
    anchor="با-cli",
    start_line=5,
    end_line=9,
    section=1,
    part=0,
    text="liara disk:create",
)
NOTHING: Mapping[str, float] = MappingProxyType({})


def index_of(manifest: Manifest) -> SearchIndex:
    document = IndexedDocument(
        CHUNK.path, CHUNK.url, CHUNK.title, "fa", None, "d", CHUNK.text, (CHUNK,)
    )
    return build_index(manifest, [document])


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(index_of(MANIFEST), SetState.FRESH, None)


def result(*hits: Hit, matched: bool = True, degraded: str | None = None) -> SearchResult:
    return SearchResult(hits, matched, frozenset({"liara"}), degraded)


def test_a_hit_begins_with_its_number_title_headings_and_url() -> None:
    assert hit_header(Hit(812, CHUNK, 1.0)) == (
        "[812] دیسک‌ها › ساخت دیسک › با CLI — https://docs.liara.ir/paas/disks/about/#با-cli"
    )


def test_the_source_line_names_commit_date_age_and_state(corpus: Corpus) -> None:
    assert source_line(corpus, NOW) == (
        "Corpus: official Liara docs, commit 0123456789ab of 2026-11-20 (10 days old),"
        " last checked 2026-11-29 (1 day old). State: fresh."
    )
    checked = replace(corpus, checked_at="2026-11-30T08:00:00+00:00")
    assert ", last checked 2026-11-30 (today). State" in source_line(checked, NOW)
    stale = replace(corpus, state=SetState.STALE, reason="the source\ncannot be </docs> reached")
    assert source_line(stale, NOW).endswith("State: stale: the source cannot be (/docs> reached.")


def test_the_source_line_of_a_local_copy_names_no_folder() -> None:
    manifest = replace(MANIFEST, origin="file", rev=None, rev_date=None)
    line = source_line(Corpus(index_of(manifest), SetState.FRESH, None), NOW)
    assert "a local copy, last checked 2026-11-29 (1 day old)" in line
    assert "/var" not in line


def test_the_facts_of_a_corpus_name_its_git_source_and_no_folder(corpus: Corpus) -> None:
    facts = corpus_facts(corpus, NOW)
    assert facts["source"] == "https://github.com/liara-cloud/docs.git"
    assert facts["commit_age_days"] == 10
    assert "/var/lib/docs" not in str(facts)


def test_a_degraded_search_says_so(corpus: Corpus) -> None:
    text = search_text(corpus, result(Hit(1, CHUNK, 1.0), degraded="embeddings: HTTP 503"), [])
    assert "\ndegraded: embeddings: HTTP 503\n" in text
    assert "degraded" not in search_text(corpus, result(Hit(1, CHUNK, 1.0)), [])


def test_blocks_that_do_not_fit_are_left_out_and_counted(corpus: Corpus) -> None:
    text = assemble(corpus, ["head"], ["x" * 9000] * 5, ["tail"], left_out="Ask for less.")
    assert len(text) <= MAX_ANSWER_CHARS
    assert "3 of 5 parts left out. Ask for less." in text
    assert text.endswith("tail")
    assert text.count("</docs>") == 1


@given(
    st.lists(st.text(max_size=30), max_size=3),
    st.lists(st.integers(0, 20_000), max_size=8),
    st.integers(2000, MAX_ANSWER_CHARS),
)
def test_an_answer_never_exceeds_its_cap(
    corpus: Corpus, head: list[str], sizes: list[int], max_chars: int
) -> None:
    blocks = ["ی" * size for size in sizes]
    assert len(assemble(corpus, head, blocks, ["tail"], max_chars=max_chars)) <= max_chars


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=800))
def test_a_block_has_one_header_and_its_url_is_the_pages(title: str, head: str, body: str) -> None:
    chunk = replace(CHUNK, title=title, heading_path=(head,), text=body, anchor=head)
    block = hit_block(Hit(7, chunk, 1.0), frozenset({"liara"}))
    first, _, rest = block.partition("\n")
    assert first.startswith("[7] ")
    assert first.rpartition(" — ")[2].startswith("https://docs.liara.ir/paas/disks/about/")
    assert "<docs" not in first.casefold()
    assert len(rest) <= 600


@pytest.mark.parametrize("url", ["javascript:alert(1)", "//evil.example/", "data:a/b,x", None])
def test_a_hit_without_a_safe_url_shows_its_path(url: str | None) -> None:
    header = hit_header(Hit(7, replace(CHUNK, url=url), 1.0))
    assert header.endswith(" — paas/disks.md")


def test_an_outline_is_cut_between_headings() -> None:
    sections = [PageSection(f"heading {n}", "", 0, 1) for n in range(100)]
    line = outline(sections, 100)
    assert len(line) <= 100
    assert line.endswith(" | …")
    assert outline(sections[:2]) == "heading 0 | heading 1"
