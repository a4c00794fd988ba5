"""The forward index: which words each text holds, and how often.

Everything that ranks by words is derived from it. It is kept in the snapshot, so that a rebuild
analyses only the texts that changed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.index.analyzer import split_words
from app.index.arrays import load_array, load_strings, save_array, save_strings

IntArray = npt.NDArray[np.int64]
SmallIntArray = npt.NDArray[np.int32]

# So many words at a time have their terms counted: all at once would take gigabytes for a large
# document set.
_BLOCK_WORDS = 200_000


class TermCounts(NamedTuple):
    """Triples: text `texts[i]` holds the term of row `rows[i]` `counts[i]` times.

    They are sorted by text, then row, and name each pair of the two once.
    """

    texts: SmallIntArray
    rows: SmallIntArray
    counts: SmallIntArray


_NOTHING = TermCounts(*np.zeros((3, 0), dtype=np.int32))


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

    def count_terms(
        self, terms_of: Callable[[str], Iterable[str]], *, block_words: int = _BLOCK_WORDS
    ) -> tuple[list[str], TermCounts]:
        """Return the distinct terms of all texts and how often each text holds each.

        `terms_of` is asked once for each distinct word; `block_words` bounds the memory.
        """
        rows: dict[str, int] = {}
        per_word = [
            [rows.setdefault(term, len(rows)) for term in terms_of(word)] for word in self.words
        ]
        sizes = np.array([len(word_rows) for word_rows in per_word], dtype=np.int64)
        flat = np.array([row for word_rows in per_word for row in word_rows], dtype=np.int32)
        blocks = [_NOTHING]
        for first, stop in self._blocks(block_words):
            blocks.append(_sum_pairs(self._terms_in(first, stop, sizes, flat), len(rows)))
        return list(rows), _joined(blocks)

    def _blocks(self, words: int) -> Iterator[tuple[int, int]]:
        """Yield runs of whole texts with at most so many words, or of one text with more."""
        first = 0
        while first < len(self):
            end = int(self.starts[first]) + words
            stop = max(int(np.searchsorted(self.starts, end, side="right")) - 1, first + 1)
            yield first, stop
            first = stop

    def _terms_in(self, first: int, stop: int, sizes: IntArray, flat: SmallIntArray) -> TermCounts:
        """Return the terms of each word of the texts `first .. stop - 1`, one after the other.

        Word w has `sizes[w]` terms; `flat` holds the rows of the terms of all words.
        """
        words = slice(int(self.starts[first]), int(self.starts[stop]))
        ids = self.ids[words]
        repeats = sizes[ids]
        # Position of each term inside its word's run, without a Python loop.
        offsets = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        texts = np.repeat(
            np.arange(first, stop, dtype=np.int32), np.diff(self.starts[first : stop + 1])
        )
        return TermCounts(
            np.repeat(texts, repeats),
            flat[np.repeat((np.cumsum(sizes) - sizes)[ids], repeats) + offsets],
            np.repeat(self.counts[words].astype(np.int32), repeats),
        )


def add_counts(left: TermCounts, right: TermCounts, term_count: int) -> TermCounts:
    """Add two sets of counts that share their `term_count` term rows."""
    return _sum_pairs(_joined([left, right]), term_count)


def _joined(blocks: Sequence[TermCounts]) -> TermCounts:
    return TermCounts(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def _sum_pairs(counts: TermCounts, term_count: int) -> TermCounts:
    """Sum the counts of equal (text, term) pairs; the result is sorted by text, then term."""
    width = max(term_count, 1)
    keys = counts.texts.astype(np.int64) * width + counts.rows
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    if not first.size:
        return _NOTHING
    sums = np.add.reduceat(counts.counts[order], first)
    texts, rows = np.divmod(keys[first], width)
    return TermCounts(texts.astype(np.int32), rows.astype(np.int32), sums.astype(np.int32))


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
