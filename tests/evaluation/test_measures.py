import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.evaluation.measures import bootstrap, hits_at, rank_of_gold, reciprocal_ranks

RANKS = st.lists(st.none() | st.integers(1, 12), min_size=1, max_size=30)


def test_the_rank_counts_distinct_pages() -> None:
    assert rank_of_gold(["a", "a", "b", "c"], ["b", "c"]) == 2
    assert rank_of_gold(["a"], ["b"]) is None
    assert rank_of_gold([], ["b"]) is None


def test_recall_is_the_share_found_within_the_cutoff() -> None:
    assert hits_at([1, 3, None, 6], 5).mean() == 0.5
    assert hits_at([5, 6], 5).tolist() == [1.0, 0.0]


def test_the_reciprocal_rank_ends_at_its_cutoff() -> None:
    assert reciprocal_ranks([1, 2, 8, 9, None]).tolist() == [1.0, 0.5, 0.125, 0.0, 0.0]


@given(RANKS)
def test_the_interval_holds_the_mean_and_is_the_same_every_time(ranks: list[int | None]) -> None:
    values = reciprocal_ranks(ranks)
    interval = bootstrap(values)
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low <= interval.mean + 1e-9
    assert interval.high >= interval.mean - 1e-9
    assert bootstrap(values) == interval


def test_nothing_measured_has_an_interval_of_nothing() -> None:
    assert bootstrap(np.zeros(0)).mean == 0.0
