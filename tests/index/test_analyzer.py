import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from app.index.analyzer import expand, grams, is_unspaced, readings, split_words, stem

ENDINGS = "ing ed able er ation fulness ization ional ements".split()
WORDS = [
    f"{word}{ending}{chr(letter)}{last}"
    for word in ("connect", "deploy", "migrat", "certif", "optim", "general")
    for ending in ENDINGS
    for letter in range(ord("a"), ord("k"))
    for last in ("ing", "ies")
]


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_words_are_stemmed_alike_in_several_threads_at_once() -> None:
    stemmer = snowballstemmer.stemmer("english")
    expected = [stemmer.stemWord(word) for word in WORDS]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: [stem(word) for word in WORDS], range(4)):
            assert found == expected


def test_a_long_run_of_chinese_is_found_by_each_of_its_words() -> None:
    terms = {term.text for term in expand("据" * 60 + "限流阈值" + "数" * 60)}
    assert {"限流", "流阈", "阈值", "值"} <= terms


def test_a_long_word_of_letters_is_left_out() -> None:
    assert expand("a" * 65) == ()
    assert grams("a" * 65) == ()


def test_pairs_of_an_unspaced_script_are_its_grams() -> None:
    assert grams("数据库") == ("数据", "据库")
    assert grams("dockerデータ") == (*grams("docker"), "デー", "ータ")
    assert grams("库") == ("库",)


def test_a_word_is_read_as_itself_and_an_unspaced_run_as_pairs() -> None:
    assert readings("healthCheck") == ["healthCheck"]
    assert readings("می‌خواهم") == ["می‌خواهم"]
    assert readings("dockerの設定") == ["docker", "の設", "設定"]


@given(st.text())
def test_the_terms_of_the_readings_are_terms_of_the_word(text: str) -> None:
    for word in split_words(text):
        if is_unspaced(word):
            read = {term.text for part in readings(word) for term in expand(part)}
            assert read == {term.text for term in expand(word)}
