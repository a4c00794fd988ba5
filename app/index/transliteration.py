"""Persian in Latin letters, Latin words in Persian letters, and the wrong keyboard layout."""

import re
from functools import lru_cache

from app.index.persian import ZWNJ

# Persian letters that sound alike are one consonant; long vowels and silent letters go, since
# neither script writes vowels reliably.
_PERSIAN_SOUNDS: dict[str, str | None] = {
    "ب": "b", "پ": "p", "ت": "t", "ط": "t", "ث": "s", "س": "s", "ص": "s", "ج": "j", "چ": "C",
    "ح": "h", "ه": "h", "خ": "K", "د": "d", "ذ": "z", "ز": "z", "ض": "z", "ظ": "z", "ر": "r",
    "ژ": "Z", "ش": "S", "غ": "G", "ق": "G", "ف": "f", "ک": "k", "گ": "g", "ل": "l", "م": "m",
    "ن": "n",
}  # fmt: skip


class _Sounds(dict[int, str | None]):
    """A table for `str.translate` that deletes every letter it does not name."""

    def __missing__(self, letter: int) -> None:
        return None


_SOUNDS = _Sounds(str.maketrans(_PERSIAN_SOUNDS))
_LATIN_PAIRS = [
    ("tion", "Sn"), ("sh", "S"), ("ch", "C"), ("kh", "K"), ("gh", "G"), ("zh", "Z"), ("ph", "f"),
    ("th", "t"), ("ck", "k"), ("x", "ks"), ("q", "G"),
]  # fmt: skip
_SOFT_C = re.compile("c(?=[eiy])")
_WITHOUT_VOWELS = str.maketrans("", "", "aeiouwvy")
_DOUBLED = re.compile(r"(.)\1+")

_ENGLISH_KEYS = "qwertyuiop[]asdfghjkl;'zxcvbnm,`"
_PERSIAN_KEYS = "ضصثقفغعهخحجچشسیبلاتنمکگظطزرذدپوپ"
_TO_PERSIAN = str.maketrans(_ENGLISH_KEYS + "C", _PERSIAN_KEYS + "ژ")
_TO_ENGLISH = str.maketrans(
    dict(zip(reversed(_PERSIAN_KEYS), reversed(_ENGLISH_KEYS), strict=True))
)


@lru_cache(maxsize=65_536)
def skeleton(word: str) -> str:
    """Return the consonants of a case-folded word, in one alphabet for both scripts.

    `damane`, `دامنه` and `domain` share a skeleton. Empty for other scripts and for digits.
    """
    word = word.replace(ZWNJ, "")
    if word.isascii():
        if not word.isalpha():
            return ""
        for letters, sound in _LATIN_PAIRS:
            word = word.replace(letters, sound)
        if "c" in word:
            word = _SOFT_C.sub("s", word).replace("c", "k")
        sounds = word.translate(_WITHOUT_VOWELS)
    else:
        sounds = word.translate(_SOUNDS)
    # A final h is nearly always silent: برنامه, barname.
    return _DOUBLED.sub(r"\1", sounds.removesuffix("h") or sounds)


def to_persian_keys(text: str) -> str:
    """Return what the same keys give on a Persian keyboard."""
    return text.translate(_TO_PERSIAN)


def to_english_keys(text: str) -> str:
    """Return what the same keys give on an English keyboard."""
    return text.translate(_TO_ENGLISH)
