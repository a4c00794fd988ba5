import numpy as np
import pytest

from app.index.snapshot import SearchIndex
from app.retrieval.abstention import FEATURES, holds_short_query, matches_well
from app.retrieval.search import Ranking, rank_chunks, search, weigh
from tests.retrieval.sets import index_of

PAGES = {
    "disk.md": "# Disks\n\nA disk keeps files after a restart. Uploaded pictures belong there.\n",
    "domain.md": "# Domains\n\nAdd a record at the registrar, then press verify.\n",
    "backup.md": "# Backups\n\nThe database is copied every night and kept for seven days.\n",
}


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    return index_of(PAGES)


def features(index: SearchIndex, query: str) -> dict[str, float]:
    return dict(zip(FEATURES, weigh(index, rank_chunks(index, query)).tolist(), strict=True))


def best(ranking: Ranking) -> int:
    return int(ranking.fused.argmax())


@pytest.mark.parametrize(
    "query",
    [
        "restart",
        "registrar",
        "uploaded pictures",
        "what happens with uploaded pictures after a restart",
        "where do I add a record for a domain",
    ],
)
def test_what_the_pages_say_matches_well(index: SearchIndex, query: str) -> None:
    assert search(index, query, top_k=1).matched


@pytest.mark.parametrize(
    "query",
    ["giraffe", "bake a chocolate cake", "who won the chess championship in nineteen ninety"],
)
def test_what_no_page_says_does_not(index: SearchIndex, query: str) -> None:
    assert not search(index, query, top_k=1).matched


def test_the_share_of_words_on_no_page_counts(index: SearchIndex) -> None:
    found = features(index, "disk giraffe zebra restart")
    assert found["unmatched"] == 0.5
    assert found["known"] == 0.5
    assert found["length"] == pytest.approx(np.log(5))
    assert found["size"] == pytest.approx(np.log(3))


def test_words_of_another_page_are_known_but_not_on_the_page(index: SearchIndex) -> None:
    found = features(index, "disk files restart pictures registrar")
    assert found["known"] == 1.0
    assert found["unmatched"] == pytest.approx(0.2)


def test_evidence_without_a_match_is_finite(index: SearchIndex) -> None:
    found = features(index, "giraffe")
    assert found["agreement"] == 0.0
    assert all(np.isfinite(value) for value in found.values())


def test_a_short_query_is_trusted_when_all_of_it_is_on_the_page(index: SearchIndex) -> None:
    for query, expected in (
        ("pictures", True),
        ("uploaded pictures", True),
        ("giraffe pictures", False),
        ("the of", False),
        ("uploaded pictures restart", False),
    ):
        ranking = rank_chunks(index, query)
        assert holds_short_query(index, ranking.analyzed, best(ranking)) is expected


def test_a_repaired_word_does_not_count_as_said(index: SearchIndex) -> None:
    ranking = rank_chunks(index, "pictores")
    assert ranking.analyzed.terms["pictures"] > 0
    assert not holds_short_query(index, ranking.analyzed, best(ranking))


def test_more_evidence_never_turns_an_answer_into_a_refusal() -> None:
    strong = np.ones(len(FEATURES)) * 3
    strong[FEATURES.index("unmatched")] = 0.0
    weak = np.zeros(len(FEATURES))
    weak[FEATURES.index("unmatched")] = 1.0
    for asked in (True, False):
        assert matches_well(strong, asked=asked)
        assert not matches_well(weak, asked=asked)
