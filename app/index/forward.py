"""The forward index: which words each text holds, and how often.

Everything that ranks by words is derived from it. It is kept in the snapshot, so that a rebuild
analyses only the texts that changed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.index.analyzer import split_words
from app.index.arrays import load_array, load_strings, save_array, save_strings

IntArray = npt.NDArray[np.int64]


class TermCounts(NamedTuple):
    """Triples: text `texts[i]` holds the term of row `rows[i]` `counts[i]` times."""

    texts: IntArray
    rows: IntArray
    counts: IntArray


class WordCounts:
    """Word counts of many texts: text t has words `ids[starts[t]:starts[t + 1]]` with `counts`."""

    def __init__(
        self, words: Sequence[str], starts: IntArray, ids: IntArray, counts: IntArray
    ) -> None:
        """Take the parts as `WordCounter.finish` makes them or `load` reads them."""
        self.words = words
        self.starts = starts
        self.ids = ids
        self.counts = counts

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.starts) - 1

    def save(self, folder: Path, name: str) -> None:
        """Write the counts as `<name>.*` files into `folder`."""
        save_strings(folder / f"{name}.words", self.words)
        save_array(folder / f"{name}.starts.npy", self.starts)
        save_array(folder / f"{name}.ids.npy", self.ids.astype(np.int32))
        save_array(folder / f"{name}.counts.npy", self.counts.astype(np.int32))

    @classmethod
    def load(cls, folder: Path, name: str) -> "WordCounts":
        """Map what `save` wrote.

        Raises:
            SnapshotError: A file is missing or damaged.
        """
        return cls(
            load_strings(folder / f"{name}.words"),
            load_array(folder / f"{name}.starts.npy", np.int64),
            load_array(folder / f"{name}.ids.npy", np.int32),
            load_array(folder / f"{name}.counts.npy", np.int32),
        )

    def count_terms(self, terms_of: Callable[[str], Iterable[str]]) -> tuple[list[str], TermCounts]:
        """Return the distinct terms of all texts and how often each text holds each.

        `terms_of` is asked once for each distinct word.
        """
        rows: dict[str, int] = {}
        per_word = [
            [rows.setdefault(term, len(rows)) for term in terms_of(word)] for word in self.words
        ]
        sizes = np.array([len(word_rows) for word_rows in per_word], dtype=np.int64)
        flat = np.array([row for word_rows in per_word for row in word_rows], dtype=np.int64)
        first = np.cumsum(sizes) - sizes
        ids = np.asarray(self.ids, dtype=np.int64)
        texts = np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts))
        repeats = sizes[ids]
        # Position of each term inside its word's run, without a Python loop.
        offsets = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        counts = TermCounts(
            np.repeat(texts, repeats),
            flat[np.repeat(first[ids], repeats) + offsets],
            np.repeat(np.asarray(self.counts, dtype=np.int64), repeats),
        )
        return list(rows), _sum_pairs(counts, len(rows))


def add_counts(left: TermCounts, right: TermCounts, term_count: int) -> TermCounts:
    """Add two sets of counts that share their `term_count` term rows."""
    both = TermCounts(*(np.concatenate(pair) for pair in zip(left, right, strict=True)))
    return _sum_pairs(both, term_count)


def _sum_pairs(counts: TermCounts, term_count: int) -> TermCounts:
    """Sum the counts of equal (text, term) pairs; the result is sorted by text, then term."""
    width = max(term_count, 1)
    keys = counts.texts * width + counts.rows
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    if not first.size:
        nothing = np.zeros(0, dtype=np.int64)
        return TermCounts(nothing, nothing, nothing)
    sums = np.add.reduceat(counts.counts[order], first)
    return TermCounts(keys[first] // width, keys[first] % width, sums)


class WordCounter:
    """Builds `WordCounts`, text after text; earlier counts can be taken over unread."""

    def __init__(self) -> None:
        """Start with no text."""
        self._rows: dict[str, int] = {}
        self._ids: list[IntArray] = []
        self._counts: list[IntArray] = []
        self._lengths: list[int] = []

    def add(self, text: str) -> None:
        """Analyse one more text."""
        counted = Counter(split_words(text))
        self._append(
            np.array([self._row(word) for word in counted], dtype=np.int64),
            np.array(list(counted.values()), dtype=np.int64),
        )

    def reuse(self, earlier: WordCounts, numbers: range) -> None:
        """Take over texts that were counted before."""
        for number in numbers:
            part = slice(int(earlier.starts[number]), int(earlier.starts[number + 1]))
            ids = [self._row(earlier.words[word]) for word in earlier.ids[part].tolist()]
            self._append(np.array(ids, dtype=np.int64), earlier.counts[part].astype(np.int64))

    def finish(self) -> WordCounts:
        """Return the counts of all texts added so far."""
        nothing = np.zeros(0, dtype=np.int64)
        return WordCounts(
            list(self._rows),
            np.cumsum([0, *self._lengths], dtype=np.int64),
            np.concatenate([nothing, *self._ids]),
            np.concatenate([nothing, *self._counts]),
        )

    def _row(self, word: str) -> int:
        return self._rows.setdefault(word, len(self._rows))

    def _append(self, ids: IntArray, counts: IntArray) -> None:
        self._ids.append(ids)
        self._counts.append(counts)
        self._lengths.append(len(ids))
