import sqlite3
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.embeddings.cache import PassageCache, QueryCache
from tests.embeddings.models import DIMENSION, rows_of, vector_of


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_vector_is_found_until_it_is_too_old() -> None:
    clock = Clock()
    cache = QueryCache(ttl_seconds=60, clock=clock)
    cache.put("m", "deploy", vector_of("deploy"))
    clock.now = 59
    assert cache.get("m", "deploy") is not None
    clock.now = 60
    assert cache.get("m", "deploy") is None
    assert (cache.counts.hits, cache.counts.misses, len(cache), cache.bytes) == (1, 1, 0, 0)


def test_models_do_not_share_vectors() -> None:
    cache = QueryCache()
    cache.put("m", "deploy", vector_of("deploy"))
    assert cache.get("other", "deploy") is None


def test_the_one_unused_for_longest_makes_room() -> None:
    one = vector_of("x").nbytes + 300
    cache = QueryCache(max_bytes=2 * one)
    for text in ("a", "b"):
        cache.put("m", text, vector_of(text))
    cache.get("m", "a")
    cache.put("m", "c", vector_of("c"))
    assert cache.get("m", "b") is None
    assert cache.get("m", "a") is not None
    assert cache.counts.evictions == 1


@given(st.lists(st.tuples(st.sampled_from("pg"), st.text(max_size=40)), max_size=60))
def test_the_bytes_stay_below_the_bound_whatever_is_asked(steps: list[tuple[str, str]]) -> None:
    cache = QueryCache(max_bytes=4000)
    for step, text in steps:
        if step == "p":
            cache.put("m", text, np.ones(DIMENSION, dtype=np.float32))
        else:
            cache.get("m", text)
        assert 0 <= cache.bytes <= 4000
        assert (cache.bytes == 0) == (len(cache) == 0)


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache = QueryCache(max_bytes=100)
    cache.put("m", "deploy", vector_of("deploy"))
    assert len(cache) == 0


def test_passages_are_known_after_a_restart(tmp_path: Path) -> None:
    texts = ["deploy an app", "استقرار", "disk"]
    PassageCache(tmp_path, "m").keep(texts[:2], rows_of(texts[:2]))
    known = PassageCache(tmp_path, "m").known([*texts, texts[0]], DIMENSION)
    assert sorted(known) == [0, 1, 3]
    np.testing.assert_array_equal(known[1], vector_of(texts[1]))
    np.testing.assert_array_equal(known[3], known[0])


def test_passages_of_another_model_or_dimension_are_not_known(tmp_path: Path) -> None:
    PassageCache(tmp_path, "m").keep(["deploy"], rows_of(["deploy"]))
    assert PassageCache(tmp_path, "other").known(["deploy"], DIMENSION) == {}
    assert PassageCache(tmp_path, "m").known(["deploy"], DIMENSION + 1) == {}
    assert list(PassageCache(tmp_path, "m").known(["deploy"], None)) == [0]


def test_a_damaged_file_is_dropped_and_started_anew(tmp_path: Path) -> None:
    cache = PassageCache(tmp_path, "m")
    cache.keep(["deploy"], rows_of(["deploy"]))
    (file,) = tmp_path.glob("*.sqlite")
    file.write_bytes(b"this is no database" * 100)
    assert cache.known(["deploy"], DIMENSION) == {}
    cache.keep(["deploy"], rows_of(["deploy"]))
    assert list(cache.known(["deploy"], DIMENSION)) == [0]


def test_a_folder_that_cannot_be_written_costs_the_cache_only(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file", encoding="utf-8")
    cache = PassageCache(tmp_path / "folder", "m")
    cache.keep(["deploy"], rows_of(["deploy"]))
    assert cache.known(["deploy"], DIMENSION) == {}
    cache.prune()


def test_passages_that_no_build_has_used_for_long_are_dropped(tmp_path: Path) -> None:
    cache = PassageCache(tmp_path, "m")
    cache.keep(["old", "new"], rows_of(["old", "new"]))
    (file,) = tmp_path.glob("*.sqlite")
    database = sqlite3.connect(file)
    with database:
        database.execute("UPDATE passages SET used = used - 100")
    database.close()
    cache.known(["new"], DIMENSION)
    cache.prune()
    assert sorted(cache.known(["old", "new"], DIMENSION)) == [1]


def test_more_passages_than_one_statement_takes(tmp_path: Path) -> None:
    texts = [f"passage {number}" for number in range(1200)]
    cache = PassageCache(tmp_path, "m")
    cache.keep(texts, rows_of(texts))
    assert len(cache.known(texts, DIMENSION)) == 1200
