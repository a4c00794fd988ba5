"""What the person meant: the weighted terms that a query is searched with."""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise

from app.errors import InvalidQueryError
from app.index.acronyms import spelled_out
from app.index.analyzer import Form, expand, grams, is_unspaced, readings, split_words, term_texts
from app.index.persian import is_persian
from app.index.transliteration import to_english_keys, to_persian_keys
from app.index.vocabulary import Vocabulary
from app.retrieval.stopwords import ALSO_ENGLISH, FINGLISH, STOPWORDS, parted_at_stopwords
from app.retrieval.synonyms import SynonymTable

# Varied one by one on the tuning halves of data/eval, official and starter: half and double of each
# moves recall@5 by 0.02 and MRR@8 by 0.03 at most, and no value is better on both corpora by more
# than a question or two. Synonyms matter most: at 0.2 or 0.6 the MRR falls by 0.003 to 0.017.
FORM_WEIGHTS = {Form.EXACT: 1.0, Form.PART: 0.6, Form.STEM: 0.6}
STOPWORD_WEIGHT = 0.1
SYNONYM_WEIGHT = 0.4
ONLY_SYNONYM_WEIGHT = 0.8
REPAIR_WEIGHT = 0.7
CLITIC_WEIGHT = 0.8
SOUND_WEIGHT = 0.4
JOINED_WEIGHT = 0.8

_CLITIC = re.compile("(?:هامون|هاتون|هاشون|هام|هات|هاش|مون|تون|شون|یم|ها|ا|م|ت|ش|و|ه|ی)$")
_SHORTEST_BASE = 3


@dataclass(slots=True)
class QueryWord:
    """A word that carries meaning, and every term that it can be found by.

    `said` are the terms of the word as typed; `terms` are also those of other spellings and senses.
    """

    text: str
    said: frozenset[str]
    terms: set[str]

    @classmethod
    def of(cls, text: str) -> "QueryWord":
        """Return a word with the terms that it has as typed."""
        # Of a pair of characters, one alone says too little to tell that the docs know the word.
        terms = [text] if is_unspaced(text) else term_texts(text)
        return cls(text, frozenset(terms), set(terms))


@dataclass(slots=True)
class AnalyzedQuery:
    """Weighted terms for the word lists and the gram list; equal terms keep the highest weight.

    `words` are the words that carry meaning, without stop words, in the order of the query.
    """

    terms: dict[str, float] = field(default_factory=dict)
    grams: dict[str, float] = field(default_factory=dict)
    words: list[QueryWord] = field(default_factory=list)

    def add_word(
        self,
        word: str,
        weight: float,
        *,
        with_grams: bool = False,
        meaning: QueryWord | None = None,
    ) -> None:
        """Add every term that `word` is found by, as another spelling or sense of `meaning`."""
        for term in expand(word):
            value = weight * FORM_WEIGHTS[term.form]
            if value > self.terms.get(term.text, 0.0):
                self.terms[term.text] = value
            if meaning is not None:
                meaning.terms.add(term.text)
        if with_grams:
            for gram in grams(word):
                if weight > self.grams.get(gram, 0.0):
                    self.grams[gram] = weight


def analyze(
    query: str,
    vocabulary: Vocabulary,
    synonyms: SynonymTable,
    *,
    without: AbstractSet[str] = frozenset(),
) -> AnalyzedQuery:
    """Analyse a query as the index analyses text, and add what else it can mean, at less weight.

    `without` may name `spelling` and `synonyms`, to leave them out.

    Raises:
        InvalidQueryError: It has no letter or digit to search for.
    """
    words = split_words(query)
    if not words:
        raise InvalidQueryError("The query has no letters or digits to search for: add words.")
    spelling = "spelling" not in without
    if spelling:
        words = _right_keyboard(query, words, vocabulary)
    words = [reading for word in words for reading in _readings(word)]
    analyzed = AnalyzedQuery()
    meant = list(_read_words(analyzed, words, vocabulary, spelling=spelling))
    for joined in _joined_neighbours(words, vocabulary):
        analyzed.add_word(joined, JOINED_WEIGHT)
        meant.append((joined, None))
    if "synonyms" not in without:
        _add_synonyms(analyzed, meant, synonyms, vocabulary)
    return analyzed


Meant = tuple[str, QueryWord | None]
"""A word as synonyms are looked up for it, and the word of the query that it reads."""


def _read_words(
    analyzed: AnalyzedQuery, words: Sequence[str], vocabulary: Vocabulary, *, spelling: bool
) -> Iterator[Meant]:
    """Add each word and its other spellings; yields what each was probably meant to be."""
    finglish = is_finglish(words)
    for number, word in enumerate(words):
        lowered = word.casefold()
        if lowered in STOPWORDS or (finglish and lowered in FINGLISH):
            analyzed.add_word(word, STOPWORD_WEIGHT)
            yield word, None
            continue
        analyzed.add_word(word, 1.0, with_grams=True)
        if _is_seam(words[max(number - 1, 0) : number + 2], word, vocabulary):
            continue
        meaning = QueryWord.of(word)
        analyzed.words.append(meaning)
        if is_unspaced(word):
            yield word, meaning
            continue
        if not spelling or (finglish and lowered in vocabulary):
            yield word, meaning
        if spelling:
            yield _add_spellings(analyzed, meaning, vocabulary, finglish), meaning


def _readings(word: str) -> list[str]:
    """Return a word itself, or the stop words and pairs of a run of an unspaced script."""
    if not is_unspaced(word):
        return [word]
    return [
        reading
        for piece in parted_at_stopwords(word)
        for reading in ([piece] if piece in STOPWORDS else readings(piece))
    ]


def _is_seam(around: Sequence[str], pair: str, vocabulary: Vocabulary) -> bool:
    """Tell whether a pair of characters is only where two words meet that the docs know."""
    if len(around) != 3 or pair in vocabulary or not is_unspaced(pair):
        return False
    left, _, right = around
    overlap = left[-1] + right[0] == pair
    return overlap and left in vocabulary and right in vocabulary


def _add_synonyms(
    analyzed: AnalyzedQuery,
    meant: Sequence[Meant],
    synonyms: SynonymTable,
    vocabulary: Vocabulary,
) -> None:
    for run, phrases in synonyms.of([word for word, _ in meant]):
        said = meant[run.start : run.stop]
        # The verb کند stems as the noun کندی does.
        if all(word.casefold() in STOPWORDS for word, _ in said):
            continue
        meanings = [meaning for _, meaning in said if meaning]
        # Where the docs never use the words that were said, the synonym carries the meaning.
        known = any(word.casefold() in vocabulary for word, _ in said)
        weight = SYNONYM_WEIGHT if known else ONLY_SYNONYM_WEIGHT
        for word in (word for phrase in phrases for word in phrase):
            analyzed.add_word(word, weight)
            for meaning in meanings:
                meaning.terms.update(term_texts(word))


def is_finglish(words: Sequence[str]) -> bool:
    """Tell whether a query is Persian in Latin letters, by its little words.

    One that is no English word tells, or two that are.
    """
    found = {word.casefold() for word in words} & FINGLISH
    is_telling = len(found) > 1 or bool(found - ALSO_ENGLISH)
    return is_telling and all(word.isascii() for word in words)


def _add_spellings(
    analyzed: AnalyzedQuery, meaning: QueryWord, vocabulary: Vocabulary, finglish: bool
) -> str:
    """Add other spellings of one word; returns the one that synonyms are looked up for."""
    word = meaning.text
    lowered = word.casefold()
    if finglish:
        alike = vocabulary.sounding_like(lowered)
        for other in alike:
            analyzed.add_word(other, REPAIR_WEIGHT, meaning=meaning)
        return alike[0] if alike else word
    known = any(term.text in vocabulary for term in expand(word) if term.form is Form.EXACT)
    if is_persian(lowered):
        base = _without_clitic(lowered, vocabulary)
        if base is not None:
            analyzed.add_word(base, CLITIC_WEIGHT, with_grams=not known, meaning=meaning)
            return word if known else base
    if known:
        return word
    return _add_repairs(analyzed, meaning, vocabulary)


def _add_repairs(analyzed: AnalyzedQuery, meaning: QueryWord, vocabulary: Vocabulary) -> str:
    """Add what an unknown word may have been meant to be; returns the likeliest."""
    word = meaning.text.casefold()
    nearest = vocabulary.nearest(word)
    for other, distance in nearest:
        weight = STOPWORD_WEIGHT if other in STOPWORDS else REPAIR_WEIGHT / distance
        analyzed.add_word(other, weight, with_grams=other not in STOPWORDS, meaning=meaning)
    parts = vocabulary.split(word)
    for part in parts:
        analyzed.add_word(part, REPAIR_WEIGHT, meaning=meaning)
    alike = vocabulary.sounding_like(word) if is_persian(word) else []
    for other in alike:
        analyzed.add_word(other, SOUND_WEIGHT, meaning=meaning)
    return next((other for other in (*(name for name, _ in nearest), *alike)), word)


def _without_clitic(word: str, vocabulary: Vocabulary) -> str | None:
    match = _CLITIC.search(word)
    if match is None or match.start() < _SHORTEST_BASE:
        return None
    base = word[: match.start()]
    return base if base in vocabulary else None


def _joined_neighbours(words: Sequence[str], vocabulary: Vocabulary) -> Iterable[str]:
    """Words typed in two that the docs write as one (node js), and spelled-out acronyms."""
    lowered = [word.casefold() for word in words]
    for left, right in pairwise(lowered):
        if left + right in vocabulary and not {left, right} & STOPWORDS:
            yield left + right
    yield from spelled_out(lowered)


def _right_keyboard(query: str, words: list[str], vocabulary: Vocabulary) -> list[str]:
    """Return the words as meant, when nearly all are unknown and the other layout knows most."""
    if _known_share(words, vocabulary) > 0.0:
        return words
    lowered = query.casefold()
    for translated in (to_persian_keys(lowered), to_english_keys(lowered)):
        others = split_words(translated)
        if others and _known_share(others, vocabulary) >= 0.5:
            return others
    return words


def _known_share(words: Sequence[str], vocabulary: Vocabulary) -> float:
    known = sum(word.casefold() in vocabulary or word.casefold() in STOPWORDS for word in words)
    return known / len(words)
