"""Bilingual synonyms: phrases that mean the same, in Persian and English."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from app.data_files import data_path
from app.index.analyzer import split_words, stem
from app.index.persian import ZWNJ

Phrase = tuple[str, ...]


class SynonymTable:
    """Groups of phrases; a phrase in a query brings the others of its group."""

    def __init__(self, groups: Iterable[Sequence[str]]) -> None:
        """Take groups of phrases as people write them."""
        self._others: defaultdict[Phrase, list[Phrase]] = defaultdict(list)
        for group in groups:
            phrases = [tuple(split_words(phrase)) for phrase in group]
            for phrase in phrases:
                key = tuple(word_key(word) for word in phrase)
                self._others[key].extend(other for other in phrases if other != phrase)
        self._longest = max((len(key) for key in self._others), default=0)

    @classmethod
    def load(cls, file: Path) -> "SynonymTable":
        """Read a JSON list of lists of phrases."""
        return cls(json.loads(file.read_text(encoding="utf-8")))

    def of(self, words: Sequence[str]) -> list[tuple[range, list[Phrase]]]:
        """Return each run of `words` that is a phrase of a group, with the other phrases.

        Longer runs win: `object storage` does not also bring the synonyms of `storage`.
        """
        keys = [word_key(word) for word in words]
        found: list[tuple[range, list[Phrase]]] = []
        start = 0
        while start < len(keys):
            length = next(
                (
                    size
                    for size in range(min(self._longest, len(keys) - start), 0, -1)
                    if tuple(keys[start : start + size]) in self._others
                ),
                0,
            )
            if length:
                run = range(start, start + length)
                found.append((run, self._others[tuple(keys[start : start + length])]))
            start += max(length, 1)
        return found


def word_key(word: str) -> str:
    """Return what two spellings of one word share: joined, case-folded, stemmed."""
    return stem(word.casefold().replace(ZWNJ, "").replace("-", ""))


@lru_cache(maxsize=1)
def shipped_synonyms() -> SynonymTable:
    """Return the table that the program ships."""
    return SynonymTable.load(data_path("synonyms.json"))
