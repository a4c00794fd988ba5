"""Text to terms: the same functions at index time and at query time.

`split_words` cuts normalised text into words as they stand; `expand` gives the terms that one
word is found by, and `grams` its character 4-grams. Both are pure functions of the word, so an
index analyses each distinct word once.
"""

import re
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from threading import local
from typing import NamedTuple

import snowballstemmer

from app.index import persian
from app.index.acronyms import acronyms
from app.index.persian import ZWNJ

ANALYZER_VERSION = 3
"""Part of a snapshot's fingerprint: raised whenever terms change."""

GRAM_LENGTH = 4
_LONGEST_WORD = 64

# Letters and digits, joined by the punctuation that identifiers, versions and compounds use.
_WORD = re.compile(rf"[^\W_]+(?:[._\-'{ZWNJ}]+[^\W_]+)*")
_CONNECTOR = re.compile(rf"[._\-'{ZWNJ}]+")
# Parts of an identifier: HTTPServer -> HTTP, Server; healthCheck -> health, Check; node18.
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z]+")
# Scripts written without spaces: Han, kana, Thai, Lao, Khmer, Myanmar.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+)"
)


class _EnglishStemmer(local):
    """One stemmer a thread: it keeps the word that it works on in itself."""

    def __init__(self) -> None:
        self.stem_word = snowballstemmer.stemmer("english").stemWord


_english = _EnglishStemmer()


class Form(IntEnum):
    """How a term came from its word: as typed, from its parts, or by stemming."""

    EXACT = 0
    PART = 1
    STEM = 2


class Term(NamedTuple):
    """A string that the index holds, and how it came from the word."""

    text: str
    form: Form


def split_words(text: str) -> list[str]:
    """Cut `text` into words in reading order, with normalised letters and their case kept."""
    return _WORD.findall(persian.normalize_letters(text))


@lru_cache(maxsize=2_048)
def expand(word: str) -> tuple[Term, ...]:
    """Return the distinct terms that `word`, one item of `split_words`, is found by.

    The word itself and its joined form come first, then the parts of compounds and identifiers,
    then stems. Unspaced scripts give characters and character pairs.
    """
    terms = _unspaced_terms(word) if is_unspaced(word) else _spaced_terms(word)
    return tuple(Term(text, form) for text, form in terms.items())


def term_texts(word: str) -> tuple[str, ...]:
    """Return the terms of `expand` without their forms: what an index holds of a word."""
    return tuple(_unspaced_terms(word)) if is_unspaced(word) else _spaced_term_texts(word)


# Many more than of `expand`: of tuples of strings the garbage collector visits none.
@lru_cache(maxsize=65_536)
def _spaced_term_texts(word: str) -> tuple[str, ...]:
    return tuple(_spaced_terms(word))


def _spaced_terms(word: str) -> dict[str, Form]:
    if len(word) > _LONGEST_WORD:
        return {}
    whole = word.casefold()
    joined = _CONNECTOR.sub("", whole)
    terms = {whole: Form.EXACT}
    terms.setdefault(joined, Form.EXACT)
    parts = [part.casefold() for part in _PART.findall(word)]
    if len(parts) > 1:
        parts = [part for part in parts if len(part) >= _shortest_part(part)]
        for part in parts:
            terms.setdefault(part, Form.PART)
    for acronym in acronyms(whole):
        terms.setdefault(acronym, Form.EXACT)
    # Stems are marked, so that the stem of one word never poses as another word as typed.
    for text in [joined, *parts]:
        stemmed = stem(text)
        if len(stemmed) > 1:
            terms.setdefault("~" + stemmed, Form.STEM)
    return terms


def _shortest_part(part: str) -> int:
    # Two Persian letters are an affix (می, ها) or the name of a letter (پی), not a word.
    return 2 if part.isascii() else 3


def _unspaced_terms(word: str) -> dict[str, Form]:
    terms: dict[str, Form] = {}
    for stretch, is_run in _stretches(word):
        if not is_run:
            terms |= _spaced_terms(stretch) | terms
            continue
        for pair in _pairs(stretch):
            terms.setdefault(pair, Form.EXACT)
        for character in stretch:
            terms.setdefault(character, Form.PART)
    return terms


def is_unspaced(word: str) -> bool:
    """Tell whether any of `word` is of a script that is written without spaces."""
    return not word.isascii() and _UNSPACED.search(word) is not None


def _stretches(word: str) -> Iterator[tuple[str, bool]]:
    """Cut a word where its script changes; yields each stretch and whether it is unspaced."""
    for number, stretch in enumerate(_UNSPACED.split(word)):
        stripped = stretch if number % 2 else stretch.strip("._-'" + ZWNJ)
        if stripped:
            yield stripped, number % 2 == 1


def _pairs(run: str) -> list[str]:
    return [left + right for left, right in pairwise(run)] or [run]


def readings(word: str) -> list[str]:
    """Return what stands for the words in `word`: itself, or each pair of an unspaced script."""
    if not is_unspaced(word):
        return [word]
    return [
        reading
        for stretch, is_run in _stretches(word)
        for reading in (_pairs(stretch) if is_run else [stretch])
    ]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a case-folded word: Persian endings, or the Porter2 English stemmer."""
    if word.isascii():
        return str(_english.stem_word(word)) if word.isalpha() else word
    if persian.is_persian(word):
        return persian.stem(word)
    return word


def grams(word: str) -> tuple[str, ...]:
    """Return the character 4-grams of `word`, with its borders, repeated as they occur.

    A word too short for one gram gives itself with its borders, an unspaced script its pairs.
    """
    if not is_unspaced(word):
        return _spaced_grams(word)
    return tuple(
        gram
        for stretch, is_run in _stretches(word)
        for gram in (_pairs(stretch) if is_run else _spaced_grams(stretch))
    )


@lru_cache(maxsize=65_536)
def _spaced_grams(word: str) -> tuple[str, ...]:
    if len(word) > _LONGEST_WORD:
        return ()
    bordered = f" {_CONNECTOR.sub('', word.casefold())} "
    if len(bordered) <= GRAM_LENGTH:
        return (bordered,)
    return tuple(
        bordered[start : start + GRAM_LENGTH] for start in range(len(bordered) - GRAM_LENGTH + 1)
    )


def tokenize(text: str) -> list[str]:
    """Return every term of every word of `text`, in order: what the word index counts."""
    return [term for word in split_words(text) for term in term_texts(word)]


def tokenize_grams(text: str) -> list[str]:
    """Return every 4-gram of every word of `text`, in order: what the gram index counts."""
    return [gram for word in split_words(text) for gram in grams(word)]
