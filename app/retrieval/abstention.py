"""Whether the docs answer a query at all: evidence from the ranked lists, weighed by a fixed model.

A logistic model over a few features; benchmarks/fit_abstention.py fits it on judged questions and
prints the constants below.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from app.index.snapshot import SearchIndex
from app.retrieval.query import AnalyzedQuery, QueryWord

FloatArray = npt.NDArray[np.float64]

FEATURES = (
    "unmatched",
    "known",
    "length",
    "size",
    "agreement",
    "word_score",
    "word_share",
    "field_share",
    "question_score",
    "question_share",
    "question_gram_share",
)
# Fitted on the tuning halves of data/eval with 2 % (with lay questions) and 1 % (without) of the
# answerable questions refused. On the test halves 90 % of the unanswerable ones are caught on the
# official docs and 88 % on the starter pages, with 3.7 % and 0.8 % of the answerable refused.
_MODELS: dict[bool, tuple[dict[str, float], float]] = {
    True: (
        {
            "unmatched": -4.373,
            "known": 2.693,
            "length": 2.868,
            "size": -1.0,
            "agreement": 3.285,
            "word_score": 0.981,
            "question_score": 0.735,
            "question_share": 0.728,
            "question_gram_share": 2.594,
        },
        -6.654,
    ),
    False: (
        {
            "unmatched": -5.388,
            "length": 4.464,
            "word_share": 0.592,
            "field_share": 0.974,
            "agreement": 4.932,
        },
        -9.757,
    ),
}
# The tuning questions have three words or more, so the model knows nothing of shorter queries.
_SHORT_QUERY = 2
# A word that nearly every chunk holds still says a little.
_LEAST_IDF = 0.3
_LEAST_GRAM_IDF = 0.1


def evidence(
    index: SearchIndex,
    analyzed: AnalyzedQuery,
    scores: Mapping[str, FloatArray],
    agreement: float,
    best: int,
) -> FloatArray:
    """Return the FEATURES of one query.

    `best` is the chunk that leads the fused ranking, `agreement` its fused score as a share of
    the highest that there can be. `unmatched` is the share of the query's meaning words that
    the page of that chunk holds in no spelling and no sense, neither in its text nor in its
    questions; `known` the share that any page holds. Scores are the best of a list, as ln(1 + s)
    and as a share of the idf of the query's words or grams. `length` and `size` are logarithms
    of the numbers of meaning words and of chunks.
    """
    words = analyzed.words
    count = max(len(words), 1)
    page = int(index.page_of_chunk[best])
    top = {name: max(float(values.max(initial=0.0)), 0.0) for name, values in scores.items()}
    word_idf = max(sum(_idf(index, word) for word in words), _LEAST_IDF)
    question_grams = index.questions.grams
    gram_idf = sum(max(question_grams.idf(gram), _LEAST_GRAM_IDF) for gram in analyzed.grams)
    question_score = top.get("questions", 0.0)
    return np.array(
        [
            sum(not _is_on_page(index, word.terms, page) for word in words) / count,
            sum(_is_known(index, word) for word in words) / count,
            math.log1p(len(words)),
            math.log(len(index)),
            agreement,
            math.log1p(top.get("words", 0.0)),
            top.get("words", 0.0) / word_idf,
            top.get("fields", 0.0) / word_idf,
            math.log1p(question_score),
            question_score / word_idf,
            top.get("question_grams", 0.0) / max(gram_idf, _LEAST_GRAM_IDF),
        ]
    )


def holds_short_query(index: SearchIndex, analyzed: AnalyzedQuery, best: int) -> bool:
    """Tell whether a query of a word or two stands, as typed, on the page of the leading chunk."""
    page = int(index.page_of_chunk[best])
    return 0 < len(analyzed.words) <= _SHORT_QUERY and all(
        _is_on_page(index, word.said, page) for word in analyzed.words
    )


def _is_known(index: SearchIndex, word: QueryWord) -> bool:
    lists = (index.words, index.questions.words)
    return any(ranked.frequency(term) for ranked in lists for term in word.terms)


def _idf(index: SearchIndex, word: QueryWord) -> float:
    """The idf of the most frequent spelling that the docs know; else that of an unknown word."""
    known = [index.words.idf(term) for term in word.terms if index.words.frequency(term)]
    return max(min(known, default=index.words.idf(word.text)), _LEAST_IDF)


def _is_on_page(index: SearchIndex, terms: Iterable[str], page: int) -> bool:
    ranges = index.chunk_ranges_of_page(page)
    return any(
        index.questions.words.holds(term, page, page + 1)
        or any(index.words.holds(term, chunks.start, chunks.stop) for chunks in ranges)
        for term in terms
    )


def matches_well(features: FloatArray, *, asked: bool) -> bool:
    """Tell whether the docs answer; `asked` says whether lay questions took part."""
    weights, bias = _MODELS[asked]
    return float(sum(weights[name] * features[FEATURES.index(name)] for name in weights)) >= -bias
