from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SnapshotError
from app.index.arrays import (
    TextStore,
    load_array,
    load_json,
    load_strings,
    save_array,
    save_json,
    save_strings,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(st.lists(TEXT, max_size=12))
def test_texts_come_back_by_number(texts: list[str]) -> None:
    store = TextStore.from_texts(texts)
    assert [store[number] for number in range(len(store))] == texts


def test_texts_come_back_from_the_disk(tmp_path: Path) -> None:
    texts = ["دیسک", "", "disk\n\nkeeps", "数据"]
    TextStore.from_texts(texts).save(tmp_path, "texts")
    store = TextStore.load(tmp_path, "texts")
    assert [store[number] for number in range(len(store))] == texts


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    assert TextStore.from_texts(["a\ud800b"])[0] == "a?b"


def test_a_store_of_no_text_is_empty(tmp_path: Path) -> None:
    TextStore.from_texts([]).save(tmp_path, "texts")
    assert len(TextStore.load(tmp_path, "texts")) == 0


def test_an_array_comes_back_and_cannot_be_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    save_array(file, np.array([1, 2, 3], dtype=np.int32))
    loaded = load_array(file, np.int32)
    assert loaded.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        loaded[0] = 9


def test_an_array_of_another_type_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    save_array(file, np.array([1, 2, 3], dtype=np.int32))
    with pytest.raises(SnapshotError, match="int32"):
        load_array(file, np.float64)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_array_are_a_snapshot_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.npy"
    file.write_bytes(content)
    with pytest.raises(SnapshotError):
        load_array(file, np.int32)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'"\xd8"'])
def test_what_is_no_json_is_a_snapshot_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(SnapshotError):
        load_json(file)


def test_strings_come_back_as_written(tmp_path: Path) -> None:
    file = tmp_path / "words"
    save_strings(file, iter(["دیسک", "~disk", ""]))
    assert load_strings(file) == ["دیسک", "~disk", ""]


def test_what_is_no_list_is_no_strings(tmp_path: Path) -> None:
    file = tmp_path / "words"
    save_json(file, {"a": 1})
    with pytest.raises(SnapshotError):
        load_strings(file)
