import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.retrieval.fusion import fuse

SCORE = st.just(0.0) | st.floats(1e-9, 1e6)
SCORES = st.lists(SCORE, min_size=4, max_size=4).map(np.array)


def test_the_best_of_a_list_gets_its_whole_weight() -> None:
    fused = fuse({"words": np.array([4.0, 2.0, 0.0])}, {"words": 1.5}, 3)
    assert fused.tolist() == [1.5, 0.75, 0.0]


def test_lists_are_added() -> None:
    scores = {"words": np.array([1.0, 0.0]), "grams": np.array([5.0, 10.0])}
    assert fuse(scores, {"words": 1.0, "grams": 0.3}, 2).tolist() == [1.15, 0.3]


def test_a_list_that_found_nothing_gives_nothing() -> None:
    scores = {"words": np.array([1.0, 0.5]), "fields": np.zeros(2)}
    assert fuse(scores, {"words": 1.0, "fields": 0.6}, 2).tolist() == [1.0, 0.5]


def test_no_list_and_no_chunk_are_no_trouble() -> None:
    assert fuse({}, {}, 3).tolist() == [0.0, 0.0, 0.0]
    assert fuse({"words": np.zeros(0)}, {"words": 1.0}, 0).tolist() == []


@given(SCORES, SCORES)
def test_scores_are_between_nothing_and_all_weights(left: np.ndarray, right: np.ndarray) -> None:
    fused = fuse({"a": left, "b": right}, {"a": 1.0, "b": 0.5}, 4)
    assert (fused >= 0).all()
    assert (fused <= 1.5 + 1e-9).all()


@given(SCORES)
def test_what_is_given_stays_as_it_was(scores: np.ndarray) -> None:
    before = scores.copy()
    fuse({"a": scores, "b": scores}, {"a": 1.0, "b": 0.5}, 4)
    assert (scores == before).all()
