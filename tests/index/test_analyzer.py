import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer

from app.index.analyzer import stem

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
