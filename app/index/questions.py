"""Lay questions: what people ask who do not know the docs' terms (document expansion).

All questions of a page are ranked as one text, by words and by character 4-grams. They help to
find the page and are never shown as its text.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.index.analyzer import grams, term_texts
from app.index.arrays import load_array, save_array
from app.index.bm25 import BM25
from app.index.forward import WordCounter

IntArray = npt.NDArray[np.int64]


class QuestionIndex:
    """Two ranked lists over the pages of an index, in the order of its pages."""

    def __init__(self, words: BM25, grams: BM25, counts: IntArray) -> None:
        """Take the parts as `build` makes them or `load` reads them."""
        self.words = words
        self.grams = grams
        self._counts = counts
        self._total = int(counts.sum())

    def __len__(self) -> int:
        """Return the number of questions."""
        return self._total

    def pages_without(self) -> list[int]:
        """Return the numbers of the pages that have no question."""
        without: list[int] = np.flatnonzero(self._counts == 0).tolist()
        return without

    @classmethod
    def build(cls, pages: Sequence[str], questions: Mapping[str, Sequence[str]]) -> "QuestionIndex":
        """Index the questions of `pages`; questions of other pages are ignored."""
        counter = WordCounter()
        for page in pages:
            counter.add("\n".join(questions.get(page, ())))
        counted = counter.finish()
        by_word = counted.count_terms(term_texts)
        return cls(
            BM25.from_counts(*by_word, len(pages)),
            BM25.from_counts(*counted.count_terms(grams), len(pages)),
            np.array([len(questions.get(page, ())) for page in pages], dtype=np.int64),
        )

    def save(self, folder: Path) -> None:
        """Write the lists as `question*` files into `folder`."""
        self.words.save(folder, "question_words")
        self.grams.save(folder, "question_grams")
        save_array(folder / "question_counts.npy", self._counts)

    @classmethod
    def load(cls, folder: Path) -> "QuestionIndex":
        """Map what `save` wrote.

        Raises:
            SnapshotError: A file is missing or damaged.
        """
        counts = load_array(folder / "question_counts.npy", np.int64)
        return cls(
            BM25.load(folder, "question_words", len(counts)),
            BM25.load(folder, "question_grams", len(counts)),
            counts,
        )
