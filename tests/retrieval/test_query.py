import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidQueryError
from app.index.analyzer import split_words
from app.index.vocabulary import Vocabulary
from app.retrieval.query import (
    ONLY_SYNONYM_WEIGHT,
    STOPWORD_WEIGHT,
    SYNONYM_WEIGHT,
    AnalyzedQuery,
    analyze,
    is_finglish,
)
from app.retrieval.stopwords import FINGLISH, STOPWORDS
from app.retrieval.synonyms import SynonymTable

KNOWN = """disk disks dis domain docker object storage nodejs port gateway
    دیسک دامنه دیتابیس استقرار 备份 数据"""
VOCABULARY = Vocabulary(dict.fromkeys(KNOWN.split(), 5))
SYNONYMS = SynonymTable(
    [["دیسک", "disk", "volume"], ["object storage", "باکت"], ["بکاپ", "backup"]]
)


def analyzed(query: str, without: frozenset[str] = frozenset()) -> AnalyzedQuery:
    return analyze(query, VOCABULARY, SYNONYMS, without=without)


def words_of(query: str) -> list[str]:
    return [word.text for word in analyzed(query).words]


def test_words_as_typed_weigh_most() -> None:
    terms = analyzed("docker").terms
    assert terms["docker"] == 1.0
    assert max(terms.values()) == 1.0


def test_stop_words_weigh_little_and_carry_no_meaning() -> None:
    query = analyzed("how is the disk")
    assert query.terms["the"] == STOPWORD_WEIGHT
    assert [word.text for word in query.words] == ["disk"]
    assert " the" not in "".join(query.grams)


@pytest.mark.parametrize("query", ["", " ", "?!", "\u200c", "\u200b\u200f", "🚀"])
def test_a_query_without_letters_or_digits_is_refused(query: str) -> None:
    with pytest.raises(InvalidQueryError):
        analyzed(query)


def test_a_synonym_weighs_less_than_the_word() -> None:
    query = analyzed("disk")
    assert query.terms["دیسک"] == SYNONYM_WEIGHT
    assert "دیسک" in query.words[0].terms
    assert "دیسک" not in query.words[0].said


def test_a_synonym_carries_a_word_that_the_docs_never_use() -> None:
    assert analyzed("باکت").terms["storage"] == ONLY_SYNONYM_WEIGHT


def test_synonyms_can_be_left_out() -> None:
    assert "دیسک" not in analyzed("disk", frozenset({"synonyms"})).terms


def test_a_typing_error_is_repaired() -> None:
    query = analyzed("dokcer")
    assert 0 < query.terms["docker"] < 1.0
    assert "docker" not in analyzed("dokcer", frozenset({"spelling"})).terms


def test_a_known_word_is_not_repaired() -> None:
    assert "disks" not in analyzed("disk").terms


def test_words_typed_as_one_are_parted_and_words_typed_in_two_are_joined() -> None:
    assert analyzed("objectstorage").terms["storage"] > 0
    assert analyzed("node js").terms["nodejs"] > 0


def test_a_verb_among_the_stop_words_brings_no_synonym() -> None:
    table = SynonymTable([["کندی", "slow"]])
    assert "slow" not in analyze("کار می کند", VOCABULARY, table).terms
    assert "slow" in analyze("کندی سایت", VOCABULARY, table).terms


def test_a_clitic_is_taken_off() -> None:
    assert analyzed("دیتابیسم").terms["دیتابیس"] > 0


def test_the_wrong_keyboard_layout_is_read() -> None:
    assert "docker" in analyzed("یخزنثق").terms
    assert words_of("یخزنثق") == ["docker"]


def test_persian_in_latin_letters_meets_persian_words() -> None:
    assert analyzed("chetor damane begiram").terms["دامنه"] > 0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("chetor deploy konam", True),
        ("domain ro koja bezanam", True),
        ("502 bad gateway", False),
        ("too many redirects", False),
        ("bad age", True),
        ("how to deploy", False),
        ("چطور deploy konam", False),
        ("", False),
    ],
)
def test_finglish_is_told_by_little_words_that_are_no_english(query: str, expected: bool) -> None:
    assert is_finglish(query.split()) is expected


def test_an_english_error_keeps_all_its_words() -> None:
    assert words_of("502 bad gateway") == ["502", "bad", "gateway"]


def test_chinese_is_read_by_pairs_without_stop_words_and_seams() -> None:
    assert words_of("怎么备份数据") == ["备份", "数据"]
    assert analyzed("怎么备份数据").terms["份数"] == 1.0


def test_a_pair_that_the_docs_do_not_know_is_a_word_beside_another_unknown_one() -> None:
    assert words_of("备份蛋糕") == ["备份", "份蛋", "蛋糕"]


def test_one_character_does_not_stand_for_its_pair() -> None:
    (word,) = analyzed("蛋糕").words
    assert word.terms == {"蛋糕"}


@given(st.text(max_size=60), st.sets(st.sampled_from(["spelling", "synonyms"])))
def test_every_term_has_a_weight_of_one_at_most(query: str, without: set[str]) -> None:
    try:
        found = analyzed(query, frozenset(without))
    except InvalidQueryError:
        return
    assert all(0 < weight <= 1 for weight in (*found.terms.values(), *found.grams.values()))
    assert all(word.said <= word.terms <= found.terms.keys() for word in found.words)


def test_little_words_are_written_as_the_analyzer_writes_them() -> None:
    assert [word for word in STOPWORDS | FINGLISH if split_words(word) != [word]] == []
