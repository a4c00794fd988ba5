import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidQueryError
from app.index.builder import build_index
from app.index.snapshot import SearchIndex
from app.models import Layer
from app.retrieval.search import LIST_WEIGHTS, PARTS, rank_chunks, search
from tests.index.test_snapshot import manifest
from tests.retrieval.sets import index_of

HANDBOOK = {
    "guides/disk.md": "# Disks\n\nA disk keeps files after a restart.\n\n"
    + "\n\n".join(
        f"## Disk step {number}\n\n" + f"The disk of step {number} is mounted. " * 30
        for number in range(6)
    ),
    "guides/domain.md": "# Domains\n\nAdd a record at the registrar, then press verify.\n",
    "api/backup.md": "# Backups\n\nThe database goes to a second disk every night.\n",
    "api/limits.md": "# Limits\n\nSix hundred calls a minute are allowed; more give error 429.\n",
}
LAYERS = (
    Layer("guides", include=("guides/**",)),
    Layer("api", include=("api/**",)),
    Layer("nothing", include=("nowhere/**",)),
)


SMALL = index_of({path: text[:200] for path, text in HANDBOOK.items()}, layers=LAYERS)


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    return index_of(HANDBOOK, layers=LAYERS)


def paths(index: SearchIndex, query: str, **options: object) -> list[str]:
    found = search(index, query, **{"top_k": 5, **options})  # type: ignore[arg-type]
    return [hit.chunk.path for hit in found.hits]


def test_the_page_about_the_words_comes_first(index: SearchIndex) -> None:
    assert paths(index, "registrar record")[0] == "guides/domain.md"
    assert paths(index, "error 429")[0] == "api/limits.md"


def test_scores_fall_and_numbers_count_from_one(index: SearchIndex) -> None:
    hits = search(index, "disk restart", top_k=2, max_per_page=1).hits
    assert [hit.chunk for hit in hits] == [index.chunk(hit.number - 1) for hit in hits]
    assert hits[0].score >= hits[1].score > 0


def test_a_page_does_not_fill_the_answer_while_others_match(index: SearchIndex) -> None:
    found = paths(index, "disk", top_k=3)
    assert found.count("guides/disk.md") == 2
    assert "api/backup.md" in found


def test_a_page_fills_the_answer_when_nothing_else_matches(index: SearchIndex) -> None:
    found = paths(index, "mounted step", top_k=4, without={"synonyms"})
    assert len(found) == 4
    assert set(found) == {"guides/disk.md"}


def test_the_cap_can_be_changed(index: SearchIndex) -> None:
    assert paths(index, "disk", top_k=2, max_per_page=1) == ["guides/disk.md", "api/backup.md"]


def test_another_page_comes_before_a_slightly_better_chunk_of_the_same_page() -> None:
    section = "## {}\n\n" + "the kettle boils on the stove " * 30
    kettles = index_of(
        {
            "a.md": f"# Kettles\n\n{section.format('One')}\n\n{section.format('Two')}",
            "b.md": "# Kettles for tea\n\n" + "the kettle boils and then whistles on a stove " * 30,
        }
    )
    fused = rank_chunks(kettles, "kettle boils").fused
    found = search(kettles, "kettle boils", top_k=3).hits
    assert fused.argmin() == found[1].number - 1
    assert [hit.chunk.path for hit in found] == ["a.md", "b.md", "a.md"]


def test_only_the_chunks_of_a_layer_are_ranked(index: SearchIndex) -> None:
    assert paths(index, "disk", layer="api") == ["api/backup.md"]
    ranking = rank_chunks(index, "disk", layer="api")
    outside = ~index.layer_mask("api")
    assert not ranking.fused[outside].any()


@pytest.mark.parametrize("layer", ["nothing", "no such layer"])
def test_a_layer_that_holds_nothing_finds_nothing(index: SearchIndex, layer: str) -> None:
    found = search(index, "disk", top_k=5, layer=layer)
    assert found.hits == ()
    assert not found.matched


def test_a_set_without_chunks_finds_nothing() -> None:
    empty = build_index(manifest(files=0, chunks=0), [])
    found = search(empty, "disk", top_k=5)
    assert found.hits == ()
    assert not found.matched


def test_a_set_of_one_chunk_is_searched() -> None:
    one = index_of({"disk.md": "# Disk\n\nA disk keeps files.\n"})
    assert paths(one, "files") == ["disk.md"]
    assert search(one, "keeps files", top_k=1).matched
    assert paths(one, "giraffe") == []


@pytest.mark.parametrize("query", ["", "  ", "!!! ؟", "\u200c", "👍", "\ud800"])
def test_a_query_without_letters_is_refused(index: SearchIndex, query: str) -> None:
    with pytest.raises(InvalidQueryError):
        search(index, query, top_k=5)


@pytest.mark.parametrize("query", ["the of and", "از به با", "の は", "how do I"])
def test_a_query_of_stop_words_alone_matches_nothing_well(index: SearchIndex, query: str) -> None:
    assert not search(index, query, top_k=5).matched


@pytest.mark.parametrize("query", ["429", "۴۲۹", "٤٢٩", "４２９"])
def test_digits_are_found_in_any_script(index: SearchIndex, query: str) -> None:
    assert paths(index, query)[0] == "api/limits.md"


@given(st.text(max_size=80), st.sampled_from([None, "api", "nothing"]))
def test_any_text_is_answered_or_refused(query: str, layer: str | None) -> None:
    try:
        found = search(SMALL, query, top_k=3, layer=layer)
    except InvalidQueryError:
        return
    assert len(found.hits) <= 3
    assert all(np.isfinite(hit.score) and hit.score > 0 for hit in found.hits)


@pytest.mark.parametrize("query", ["a" * 5_000, "disk " * 500, "x." * 2_000, "数" * 3_000])
def test_a_huge_query_is_answered(query: str) -> None:
    assert len(search(SMALL, query, top_k=3).hits) <= 3


@pytest.mark.parametrize("part", sorted(PARTS))
def test_each_part_can_be_left_out(index: SearchIndex, part: str) -> None:
    hits = search(index, "disk restart", top_k=3, without={part}).hits
    assert hits
    assert all(part not in hit.scores for hit in hits)


def test_without_any_list_nothing_is_found(index: SearchIndex) -> None:
    assert paths(index, "disk", without=frozenset(LIST_WEIGHTS)) == []


def test_equal_chunks_keep_the_order_of_the_files() -> None:
    same = index_of({f"{name}.md": "# Note\n\nthe same kettle\n" for name in "cab"})
    plain = search(same, "kettle", top_k=3, without={"fields"}).hits
    assert [hit.number for hit in plain] == [1, 2, 3]


def test_lay_questions_find_a_page_that_does_not_say_the_word() -> None:
    asked = json.dumps({"url": "guides/disk.md", "questions": ["my uploads vanished overnight"]})
    with_questions = index_of(HANDBOOK, questions=asked)
    assert paths(with_questions, "uploads vanished")[0] == "guides/disk.md"
    assert paths(with_questions, "uploads vanished", without={"questions", "question_grams"}) == []


def test_a_query_that_names_a_product_prefers_its_pages_to_those_of_its_twins() -> None:
    pages = {
        f"paas/{name}/{page}.md": f"# {page}\n\nHow {page} works in the platform, in short.\n"
        for name in ("laravel", "django", "flask")
        for page in ("disks", "envs", "logs", "domains")
    }
    twins = index_of(pages)
    assert paths(twins, "disks in django", top_k=1) == ["paas/django/disks.md"]
    scores = {
        hit.chunk.path: hit.score
        for hit in search(twins, "disks django", top_k=12).hits
    }  # fmt: skip
    plain = {
        hit.chunk.path: hit.score
        for hit in search(twins, "disks django", top_k=12, without={"products"}).hits
    }
    assert scores["paas/django/disks.md"] > plain["paas/django/disks.md"]
    assert scores["paas/flask/disks.md"] < plain["paas/flask/disks.md"]
