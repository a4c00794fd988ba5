import json
from pathlib import Path

import pytest

from app.data_files import data_path
from app.index.analyzer import split_words
from app.retrieval.stopwords import STOPWORDS
from app.retrieval.synonyms import SynonymTable, shipped_synonyms, word_key

TABLE = SynonymTable([["object storage", "فضای ذخیره‌سازی", "s3"], ["storage", "انبار"]])


def others(query: str, table: SynonymTable = TABLE) -> list[str]:
    return [" ".join(phrase) for _, found in table.of(split_words(query)) for phrase in found]


def test_a_phrase_brings_the_others_of_its_group() -> None:
    assert others("s3") == ["object storage", "فضای ذخیره‌سازی"]


def test_the_longest_phrase_wins() -> None:
    assert others("object storage") == ["فضای ذخیره‌سازی", "s3"]
    assert others("cheap storage") == ["انبار"]


def test_the_run_of_words_is_named() -> None:
    ((run, _),) = TABLE.of(["cheap", "object", "storage"])
    assert run == range(1, 3)


@pytest.mark.parametrize("typed", ["Object Storage", "object storages", "OBJECT storage"])
def test_case_and_endings_do_not_matter(typed: str) -> None:
    assert "s3" in others(typed)


def test_two_spellings_of_a_compound_have_one_key() -> None:
    assert word_key("ذخیره‌سازی") == word_key("ذخیرهسازی")
    assert word_key("web-socket") == word_key("websocket")


def test_words_of_no_group_bring_nothing() -> None:
    assert TABLE.of(["kettle"]) == []
    assert TABLE.of([]) == []
    assert SynonymTable([]).of(["kettle"]) == []


def test_a_word_of_two_groups_brings_both() -> None:
    table = SynonymTable([["image", "عکس"], ["image", "ایمیج"]])
    assert others("image", table) == ["عکس", "ایمیج"]


def test_a_table_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "synonyms.json"
    file.write_text(json.dumps([["دیسک", "disk"]], ensure_ascii=False), encoding="utf-8")
    assert others("disk", SynonymTable.load(file)) == ["دیسک"]


def test_the_shipped_table_joins_persian_and_english() -> None:
    assert "disk" in others("دیسک", shipped_synonyms())
    assert "postgresql" in others("پستگرس", shipped_synonyms())


def test_the_shipped_groups_hold_terms_and_not_sentences() -> None:
    groups = json.loads(data_path("synonyms.json").read_text(encoding="utf-8"))
    phrases = [phrase for group in groups for phrase in group]
    assert all(1 <= len(phrase.split()) <= 4 for phrase in phrases)
    words = {word for phrase in phrases for word in split_words(phrase)}
    # Verbs as in a complaint: نمیشه, می‌کند.
    assert not [word for word in words if word.startswith(("می‌", "نمی")) or word == "نیست"]
    assert not [phrase for phrase in phrases if set(split_words(phrase)) <= STOPWORDS]


def test_the_shipped_groups_say_nothing_twice() -> None:
    groups = json.loads(data_path("synonyms.json").read_text(encoding="utf-8"))
    for group in groups:
        keys = [tuple(split_words(phrase)) for phrase in group]
        assert len(keys) == len(set(keys)) > 1, group
    firsts = [group[0] for group in groups]
    assert len(firsts) == len(set(firsts))
