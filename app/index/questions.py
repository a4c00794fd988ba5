"""Lay questions: what people ask who do not know the docs' terms (document expansion).

Each question is ranked on its own; a page scores as its best question does. They help to find a
page and are never shown as its text.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.index.analyzer import expand
from app.index.arrays import load_array, save_array
from app.index.bm25 import BM25
from app.index.forward import WordCounter

FloatArray = npt.NDArray[np.float64]


class QuestionIndex:
    """The questions of all pages: page p's are rows `starts[p] .. starts[p + 1]` of the list."""

    def __init__(self, ranked: BM25, starts: npt.NDArray[np.int64]) -> None:
        """Take the parts as `build` makes them or `load` reads them."""
        self._ranked = ranked
        self._starts = starts
        self._asked = np.flatnonzero(np.diff(starts))
        self._first = starts[:-1][self._asked]

    def __len__(self) -> int:
        """Return the number of questions."""
        return self._ranked.size

    @classmethod
    def build(cls, pages: Sequence[str], questions: Mapping[str, Sequence[str]]) -> "QuestionIndex":
        """Index the questions of `pages`; questions of other pages are ignored."""
        counter, counts = WordCounter(), []
        for page in pages:
            of_page = questions.get(page, ())
            counts.append(len(of_page))
            for question in of_page:
                counter.add(question)
        terms, counted = counter.finish().count_terms(
            lambda word: [term.text for term in expand(word)]
        )
        ranked = BM25.from_counts(terms, counted, sum(counts))
        return cls(ranked, np.cumsum([0, *counts], dtype=np.int64))

    def scores(self, query: Mapping[str, float]) -> FloatArray:
        """Return, for each page, the score of its best question."""
        pages = np.zeros(len(self._starts) - 1)
        if self._asked.size:
            pages[self._asked] = np.maximum.reduceat(self._ranked.scores(query), self._first)
        return pages

    def pages_without(self) -> list[int]:
        """Return the numbers of the pages that have no question."""
        without: list[int] = np.flatnonzero(np.diff(self._starts) == 0).tolist()
        return without

    def save(self, folder: Path, name: str) -> None:
        """Write the questions' list as `<name>.*` files into `folder`."""
        self._ranked.save(folder, name)
        save_array(folder / f"{name}.pages.npy", self._starts)

    @classmethod
    def load(cls, folder: Path, name: str) -> "QuestionIndex":
        """Map what `save` wrote.

        Raises:
            SnapshotError: A file is missing or damaged.
        """
        starts = load_array(folder / f"{name}.pages.npy", np.int64)
        return cls(BM25.load(folder, name, int(starts[-1])), starts)
