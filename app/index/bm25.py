"""BM25 Okapi from inverted postings: the weight of each term in each document is computed once.

The formula and the treatment of negative idf are those of `rank_bm25.BM25Okapi` with its defaults
(Robertson and Zaragoza 2009; Trotman et al. 2014), and the tests hold the scores equal to it. A
query costs one gather of its terms' postings and one `bincount`, instead of a pass over the corpus.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from app.index.arrays import load_array, load_strings, save_array, save_strings
from app.index.forward import TermCounts

K1 = 1.5
B = 0.75
EPSILON = 0.25
SMALL_CORPUS = 16
"""Below so many documents the idf of Okapi is of no use."""

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]


class BM25:
    """An immutable ranked list over `size` documents, numbered from 0.

    `vocabulary` maps a term to its row; row r's postings are `documents[starts[r]:starts[r + 1]]`
    with their `weights`.
    """

    def __init__(
        self,
        terms: Sequence[str],
        starts: npt.NDArray[np.int64],
        documents: IntArray,
        weights: FloatArray,
        size: int,
    ) -> None:
        """Take the parts as `from_counts` makes them or `load` reads them."""
        self.terms = terms
        self.vocabulary: dict[str, int] = {term: row for row, term in enumerate(terms)}
        self.size = size
        self._starts = starts
        self._bounds: list[int] = starts.tolist()
        self._documents = documents
        self._weights = weights

    @classmethod
    def from_counts(cls, terms: Sequence[str], counted: TermCounts, size: int) -> Self:
        """Build from the counts of `size` documents; `terms` names their rows.

        Documents without a term count towards the average length; terms that no document has
        are dropped.
        """
        documents, rows, counts = counted
        # Counts come in the order of documents, which each term's postings keep.
        order = np.argsort(rows, kind="stable")
        documents, rows, counts = documents[order], rows[order], counts[order]
        used, frequencies = np.unique(rows, return_counts=True)
        starts = np.concatenate(([0], np.cumsum(frequencies))).astype(np.int64)
        lengths = np.bincount(documents, weights=counts, minlength=size)
        average = float(lengths.sum()) / size if size else 0.0
        idf = _idf(frequencies.astype(np.int64), size)
        damping = K1 * (1 - B + B * lengths / average) if average else np.zeros(size)
        weights = counts.astype(np.float64) * (K1 + 1)
        weights /= counts + damping[documents]
        weights *= np.repeat(idf, frequencies)
        kept = [terms[row] for row in used.tolist()]
        return cls(kept, starts, documents, weights, size)

    def scores(self, query: Mapping[str, float]) -> FloatArray:
        """Return the score of every document for weighted query terms; unknown terms give 0."""
        documents, weights = [], []
        for term, weight in query.items():
            row = self.vocabulary.get(term)
            if row is None:
                continue
            postings = slice(self._bounds[row], self._bounds[row + 1])
            documents.append(self._documents[postings])
            weights.append(self._weights[postings] * weight)
        if not documents:
            return np.zeros(self.size)
        # bincount counts in int64: widening while joining saves it a pass.
        joined = np.concatenate(documents, dtype=np.int64)
        scores = np.bincount(joined, weights=np.concatenate(weights), minlength=self.size)
        return scores.astype(np.float64, copy=False)

    def frequency(self, term: str) -> int:
        """Return how many documents hold `term`."""
        row = self.vocabulary.get(term)
        return 0 if row is None else self._bounds[row + 1] - self._bounds[row]

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a term; an unknown one counts as half known."""
        frequency = self.frequency(term) or 0.5
        return math.log((self.size - frequency + 0.5) / (frequency + 0.5))

    def holds(self, term: str, first: int, stop: int) -> bool:
        """Tell whether any of the documents `first .. stop - 1` holds `term`."""
        row = self.vocabulary.get(term)
        if row is None:
            return False
        postings = self._documents[self._bounds[row] : self._bounds[row + 1]]
        # A number of another type would make numpy convert all postings.
        position = int(postings.searchsorted(np.int32(first)))
        return position < len(postings) and int(postings[position]) < stop

    def save(self, folder: Path, name: str) -> None:
        """Write the list as `<name>.*` files into `folder`."""
        save_strings(folder / f"{name}.terms", self.terms)
        save_array(folder / f"{name}.starts.npy", self._starts)
        save_array(folder / f"{name}.documents.npy", self._documents)
        save_array(folder / f"{name}.weights.npy", self._weights)

    @classmethod
    def load(cls, folder: Path, name: str, size: int) -> Self:
        """Read the list that `save` wrote; postings stay on disk, memory-mapped.

        Raises:
            SnapshotError: A file is missing, damaged or does not fit the others.
        """
        return cls(
            load_strings(folder / f"{name}.terms"),
            load_array(folder / f"{name}.starts.npy", np.int64),
            load_array(folder / f"{name}.documents.npy", np.int32),
            load_array(folder / f"{name}.weights.npy", np.float64),
            size,
        )


def _idf(frequencies: npt.NDArray[np.int64], size: int) -> FloatArray:
    """Inverse document frequency; a negative one becomes EPSILON times the average, as in Okapi.

    In a corpus of a few documents that would leave nothing: a term in one of two weighs zero.
    There the always positive variant of Lucene is used.
    """
    rarity: FloatArray = (size - frequencies + 0.5) / (frequencies + 0.5)
    if size < SMALL_CORPUS:
        return np.log1p(rarity)
    idf = np.log(rarity)
    if idf.size:
        idf[idf < 0] = EPSILON * (idf.sum() / idf.size)
    return idf
