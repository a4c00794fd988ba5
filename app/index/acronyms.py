"""Latin acronyms that Persian speakers spell out: وی‌پی‌اس is VPS, with or without a clitic."""

import re
from functools import lru_cache
from itertools import product

from app.index.persian import ZWNJ

# Names of the letters in normalised spelling; آی and ای have become one spelling there.
_NAMES = {
    "ای": "ai", "بی": "b", "سی": "c", "دی": "d", "یی": "e", "اف": "f", "جی": "g", "اچ": "h",
    "ایچ": "h", "کی": "k", "ال": "l", "ام": "m", "ان": "n", "او": "o", "پی": "p", "کیو": "q",
    "ار": "r", "اس": "s", "تی": "t", "یو": "u", "وی": "v", "دبلیو": "w", "ایکس": "x", "وای": "y",
    "زد": "z",
}  # fmt: skip
_CLITIC = re.compile("(?:هایم|هام|های|ها|مون|تون|شون|مان|تان|شان|ام|ات|اش|م|ت|ش|و|ی|ای)$")
_MOST_LETTERS = 5
_MOST_READINGS = 4


@lru_cache(maxsize=16_384)
def acronyms(word: str) -> tuple[str, ...]:
    """Return the acronyms that a compound of letter names can stand for, in lower case.

    `word` holds its letter names parted by ZWNJ; the last may carry a clitic (وی‌پی‌اسم). None
    when it is anything else.
    """
    parts = word.split(ZWNJ)
    letters = [_NAMES.get(part) for part in parts[:-1]]
    last = parts[-1]
    if len(parts) < 2 or len(parts) > _MOST_LETTERS + 1 or None in letters:
        return ()
    if last in _NAMES:
        letters.append(_NAMES[last])
    elif (bare := _CLITIC.sub("", last)) in _NAMES:
        letters.append(_NAMES[bare])
    elif len(letters) < 2 or not _CLITIC.fullmatch(last):
        return ()
    readings = product(*(letter for letter in letters if letter))
    return tuple("".join(reading) for reading in list(readings)[:_MOST_READINGS])


def spelled_out(words: list[str]) -> list[str]:
    """Join runs of letter names that were typed with spaces: سی دی ان -> سی‌دی‌ان."""
    runs: list[str] = []
    run: list[str] = []
    for word in [*words, ""]:
        if word in _NAMES or (run and _CLITIC.sub("", word) in _NAMES):
            run.append(word)
            continue
        if len(run) > 1:
            runs.append(ZWNJ.join(run))
        run = []
    return runs
