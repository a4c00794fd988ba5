from pathlib import Path

import numpy as np
import pytest

from app.errors import DenseReason, DenseUnavailableError, SnapshotError
from app.index.centred import CENTRE_FROM
from app.index.dense import DenseIndex, find_vectors

DIMENSION = 24


def unit_rows(count: int, seed: int = 1, offset: float = 0.0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSION)) + offset
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def built(count: int = 30, corpus: str = "c1", model: str = "m") -> DenseIndex:
    return DenseIndex.build(unit_rows(count), corpus=corpus, model=model)


def find(*set_dirs: Path, corpus: str = "c1", model: str = "m", chunks: int = 30) -> DenseIndex:
    return find_vectors(*set_dirs, corpus=corpus, model=model, dimension=DIMENSION, chunks=chunks)


def reason_of(*set_dirs: Path, **wanted: object) -> DenseReason:
    with pytest.raises(DenseUnavailableError) as caught:
        find(*set_dirs, **wanted)  # type: ignore[arg-type]
    return caught.value.reason


def test_the_cosine_is_that_of_the_textbook() -> None:
    rows, query = unit_rows(30), unit_rows(1, seed=2)[0]
    cosines = DenseIndex.build(rows, corpus="c", model="m").cosines(query)
    expected = [float(np.dot(row, query)) for row in rows.astype(np.float64)]
    np.testing.assert_allclose(cosines, expected, atol=1e-6)


def test_a_chunk_is_nearest_to_itself() -> None:
    for count in (30, CENTRE_FROM + 50):
        rows = unit_rows(count, offset=3.0)
        index = DenseIndex.build(rows, corpus="c", model="m")
        assert [int(np.argmax(index.cosines(row))) for row in rows[:20]] == list(range(20))


def test_what_all_vectors_share_no_longer_makes_them_alike() -> None:
    rows = unit_rows(CENTRE_FROM, offset=3.0)
    raw = rows @ rows[0]
    cosines = DenseIndex.build(rows, corpus="c", model="m").cosines(rows[0])
    assert raw[1:].mean() > 0.85
    assert abs(cosines[1:].mean()) < 0.1


def test_vectors_come_back_from_the_disk_as_they_were(tmp_path: Path) -> None:
    index = built(CENTRE_FROM)
    index.publish(tmp_path)
    loaded = find(tmp_path, chunks=CENTRE_FROM)
    query = unit_rows(1, seed=5)[0]
    np.testing.assert_array_equal(loaded.cosines(query), index.cosines(query))
    assert loaded.stamp == index.stamp


def test_a_page_is_as_near_as_its_nearest_question(tmp_path: Path) -> None:
    rows, questions = unit_rows(30), unit_rows(5, seed=9)
    pages = [0, 0, 2, 3, 3]
    index = DenseIndex.build(
        rows, corpus="c1", model="m", questions=questions, page_of_question=pages
    )
    index.publish(tmp_path)
    for query in unit_rows(4, seed=3):
        by_question = questions @ query
        expected = [max(0, *by_question[:2]), 0, max(0, by_question[2]), max(0, *by_question[3:])]
        np.testing.assert_allclose(index.page_cosines(query, 4), expected, atol=1e-6)
        np.testing.assert_array_equal(
            find(tmp_path).page_cosines(query, 4), index.page_cosines(query, 4)
        )


def test_vectors_of_something_else_are_refused_with_the_reason(tmp_path: Path) -> None:
    assert reason_of(tmp_path) is DenseReason.NO_VECTORS
    built().publish(tmp_path)
    assert reason_of(tmp_path, corpus="c2") is DenseReason.CORPUS_MISMATCH
    assert reason_of(tmp_path, model="other") is DenseReason.MODEL_MISMATCH
    with pytest.raises(DenseUnavailableError) as caught:
        find_vectors(tmp_path, corpus="c1", model="m", dimension=99, chunks=30)
    assert caught.value.reason is DenseReason.DIMENSION_MISMATCH
    assert reason_of(tmp_path, chunks=31) is DenseReason.VECTORS_DAMAGED
    assert len(find(tmp_path)) == 30


@pytest.mark.parametrize(
    "name", ["stamp.json", "chunks.npy", "chunks.axes.npy", "questions.npy", "questions.pages.npy"]
)
@pytest.mark.parametrize("content", [None, b"", b"junk"])
def test_damaged_vectors_are_a_reason_not_a_crash(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    folder = built().publish(tmp_path)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    assert reason_of(tmp_path) is DenseReason.VECTORS_DAMAGED


def test_another_format_is_not_read(tmp_path: Path) -> None:
    folder = built().publish(tmp_path)
    stamp = (folder / "stamp.json").read_text(encoding="utf-8")
    (folder / "stamp.json").write_text(stamp.replace('"format": 1', '"format": 99'), "utf-8")
    with pytest.raises(SnapshotError):
        DenseIndex.load(folder)


def test_the_vectors_of_before_stay_for_a_way_back_and_older_ones_go(tmp_path: Path) -> None:
    for corpus in ("c1", "c2", "c3"):
        built(corpus=corpus).publish(tmp_path)
    assert len(list((tmp_path / "vectors").iterdir())) == 2
    assert find(tmp_path, corpus="c3").stamp.corpus == "c3"


def test_an_image_may_bring_vectors_along(tmp_path: Path) -> None:
    data, image = tmp_path / "data", tmp_path / "image"
    built(corpus="c1").publish(image)
    built(corpus="c2").publish(data)
    assert find(data, image, corpus="c1").stamp.corpus == "c1"


def test_a_query_of_another_dimension_is_refused() -> None:
    with pytest.raises(DenseUnavailableError) as caught:
        built().check_query(np.ones(DIMENSION + 1, dtype=np.float32))
    assert caught.value.reason is DenseReason.DIMENSION_MISMATCH


def test_vectors_that_say_nothing_are_not_indexed() -> None:
    same = np.tile(unit_rows(1), (30, 1))
    with pytest.raises(DenseUnavailableError) as caught:
        DenseIndex.build(same, corpus="c", model="m")
    assert caught.value.reason is DenseReason.DEGENERATE
    broken = unit_rows(30)
    broken[3, 3] = np.nan
    with pytest.raises(DenseUnavailableError) as caught:
        DenseIndex.build(broken, corpus="c", model="m")
    assert caught.value.reason is DenseReason.NOT_FINITE
