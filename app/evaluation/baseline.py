"""The predecessor's method, as published: the yardstick that our own search is held against.

`rank_bm25.BM25Okapi` on words and on character 4-grams of every chunk, 50 and 20 candidates, equal
reciprocal rank fusion with k = 60 (Cormack et al. 2009).
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from rank_bm25 import BM25Okapi

from app.index.analyzer import split_words, tokenize_grams
from app.index.builder import field_text
from app.index.snapshot import SearchIndex

WORD_CANDIDATES = 50
GRAM_CANDIDATES = 20
RANK_CONSTANT = 60


class BaselineSearch:
    """Equal reciprocal rank fusion of word BM25 and 4-gram BM25 over the chunks of an index."""

    def __init__(self, index: SearchIndex) -> None:
        """Tokenise every chunk, with its title and headings."""
        chunks = [index.chunk(number) for number in range(len(index))]
        texts = [f"{field_text(chunk)}\n{chunk.text}" for chunk in chunks]
        self._pages = [chunk.page for chunk in chunks]
        self._words = BM25Okapi([_words(text) for text in texts])
        self._grams = BM25Okapi([tokenize_grams(text) for text in texts])

    def pages(self, query: str, top_k: int) -> list[str]:
        """Return the pages of the `top_k` best chunks, best first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for ranking in (
            _best(self._words.get_scores(_words(query)), WORD_CANDIDATES),
            _best(self._grams.get_scores(tokenize_grams(query)), GRAM_CANDIDATES),
        ):
            for rank, number in enumerate(ranking, start=1):
                scores[number] += 1 / (RANK_CONSTANT + rank)
        ranked = sorted(scores, key=lambda number: (-scores[number], number))
        return [self._pages[number] for number in ranked[:top_k]]


def _words(text: str) -> list[str]:
    return [word.casefold() for word in split_words(text)]


def _best(scores: Sequence[float], count: int) -> list[int]:
    values = np.asarray(scores)
    order = np.argsort(-values, kind="stable")[:count]
    return [int(number) for number in order if values[number] > 0]
