"""The words that an index knows: for repairing spelling and for meeting other spellings."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from app.index.transliteration import skeleton

_SHORTEST_REPAIRED = 4
_SHORTEST_SKELETON = 3
_SHORTEST_PART = 3


class Vocabulary:
    """Words of an index with the number of chunks that hold each."""

    def __init__(self, frequencies: Mapping[str, int]) -> None:
        """Take words as typed (case-folded), not stems."""
        self._frequencies = frequencies
        by_length: defaultdict[tuple[bool, int], list[str]] = defaultdict(list)
        by_skeleton: defaultdict[str, list[str]] = defaultdict(list)
        for word in frequencies:
            by_length[word.isascii(), len(word)].append(word)
            key = skeleton(word)
            if len(key) >= _SHORTEST_SKELETON:
                by_skeleton[key].append(word)
        self._by_length = {key: _SameLength(words) for key, words in by_length.items()}
        # Tuples of strings, unlike lists, are nothing that the garbage collector has to visit.
        self._by_skeleton = {key: tuple(words) for key, words in by_skeleton.items()}

    def __contains__(self, word: str) -> bool:
        """Tell whether any chunk holds the word as typed."""
        return word in self._frequencies

    def frequency(self, word: str) -> int:
        """Return how many chunks hold the word."""
        return self._frequencies.get(word, 0)

    def nearest(self, word: str, limit: int = 3) -> list[tuple[str, int]]:
        """Return known words within one or two typing errors, nearest and most frequent first.

        The distance is the optimal string alignment distance: insertions, deletions,
        substitutions and swaps of neighbours. Short words allow one error.
        """
        if len(word) < _SHORTEST_REPAIRED:
            return []
        errors = 1 if len(word) < _SHORTEST_REPAIRED + 2 else 2
        found: list[tuple[str, int]] = []
        for length in range(len(word) - errors, len(word) + errors + 1):
            words = self._by_length.get((word.isascii(), length))
            choices = words.with_letters_of(word, errors) if words else []
            matches = process.extract(
                word, choices, scorer=OSA.distance, score_cutoff=errors, limit=limit * 4
            )
            found.extend((choice, int(distance)) for choice, distance, _ in matches)
        found.sort(key=lambda item: (item[1], -self.frequency(item[0])))
        return found[:limit]

    def split(self, word: str) -> tuple[str, ...]:
        """Return the two known words that `word` was typed from without a space, if any."""
        pairs = [
            (word[:cut], word[cut:])
            for cut in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
            if word[:cut] in self and word[cut:] in self
        ]
        # The rarer half decides: a frequent ending alone makes no compound likely.
        return max(pairs, key=lambda pair: min(map(self.frequency, pair)), default=())

    def sounding_like(self, word: str, limit: int = 3) -> list[str]:
        """Return known words of the other script that sound alike, most frequent first."""
        alike = [
            other
            for other in self._by_skeleton.get(skeleton(word), ())
            if other.isascii() != word.isascii()
        ]
        alike.sort(key=self.frequency, reverse=True)
        return alike[:limit]


class _SameLength:
    """Words of one length, sieved by the sets of their letters before distances are computed."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(words)
        codes = np.array(words).view(np.uint32).reshape(len(words), -1)
        self._letters = np.bitwise_or.reduce(_bits(codes), axis=1)

    def with_letters_of(self, word: str, errors: int) -> list[str]:
        """Return the words that can be within so many typing errors of `word`, in order.

        One error takes away one letter at most and brings one, so it changes two bits at most.
        """
        wanted = np.bitwise_or.reduce(_bits(np.array([ord(letter) for letter in word])))
        close = np.bitwise_count(self._letters ^ wanted) <= 2 * errors
        return [self._words[number] for number in np.flatnonzero(close).tolist()]


def _bits(codes: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint64]:
    """Return a word of 64 bits with one set for each code; other codes may share it."""
    bits: npt.NDArray[np.uint64] = np.uint64(1) << (codes.astype(np.uint64) % np.uint64(64))
    return bits
