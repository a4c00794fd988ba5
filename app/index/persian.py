"""Normalisation tables and the light stemmer for Persian: the alphabet part of the analyzer."""

import re
import unicodedata

ZWNJ = "\u200c"

# One letter for each sound that keyboards write in several ways. The decomposition in
# `normalize` has already taken hamza and madda off their carriers.
_LETTERS = {
    "ي": "ی",
    "ى": "ی",
    "ې": "ی",
    "ے": "ی",
    "ك": "ک",
    "ڪ": "ک",
    "ة": "ه",
    "ۀ": "ه",
    "ە": "ه",
    "ہ": "ه",
    "ھ": "ه",
    "ۆ": "و",
    "ٱ": "ا",
    "،": ",",
    "؛": ";",
    "؟": "?",
    "٪": "%",
    "٫": ".",
    "٬": ",",
    "’": "'",
    "‘": "'",
}
_DIGITS = {chr(zero + value): str(value) for zero in (0x0660, 0x06F0) for value in range(10)}
# Tatweel, bidirectional marks and isolates, ZWJ, word joiner, soft hyphen, byte-order mark and
# variation selectors carry no meaning for search. ZWNJ is not among them: it divides compounds.
_DELETED = [
    0x0640,
    0x00AD,
    0x200B,
    0x200D,
    0x200E,
    0x200F,
    0x061C,
    0x2060,
    0xFEFF,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xFE00, 0xFE10),
    *range(0xE0000, 0xE0080),
]
# Arabic and Latin combining marks; marks of other scripts change the word and stay.
_MARKS = [
    *range(0x0300, 0x0370),
    *range(0x0610, 0x061B),
    *range(0x064B, 0x0660),
    0x0670,
    *range(0x06D6, 0x06DD),
    *range(0x06DF, 0x06E9),
    *range(0x06EA, 0x06EE),
]
_TABLE: dict[int, str | None] = {
    **{ord(letter): target for letter, target in (_LETTERS | _DIGITS).items()},
    **dict.fromkeys(_DELETED + _MARKS),
}


def normalize_letters(text: str) -> str:
    """Return `text` with one spelling for each letter and digit; case is kept.

    Compatibility forms are folded, Arabic letters become Persian, Arabic-Indic and extended
    digits become ASCII, and tatweel, diacritics, bidi marks and ZWJ go. ZWNJ stays. Applying it
    twice gives the same text as once.
    """
    if text.isascii():
        return text
    # Nearly all text is of characters that change alone, whatever stands beside them.
    if _CHANGING_ALONE.fullmatch(text):
        return text.translate(_ALONE)
    return _normalize(text)


def _normalize(text: str) -> str:
    # Each pass can only shorten or fix the text, so the loop reaches a fixed point; nearly
    # always the second pass changes nothing.
    previous = ""
    while text != previous:
        previous = text
        decomposed = unicodedata.normalize("NFKD", text).translate(_TABLE)
        text = unicodedata.normalize("NFC", decomposed)
    return text


# Latin with its accents, Arabic, general punctuation: none of them joins with a neighbour.
_CHANGING_ALONE = re.compile("[\x00-\u024f\u0600-\u06ff\u2000-\u206f]*")
_ALONE = {
    code: _normalize(chr(code))
    for block in ((0x80, 0x250), (0x600, 0x700), (0x2000, 0x2070))
    for code in range(*block)
}

# Longest first: plural, comparative and possessive endings, written and colloquial.
_SUFFIXES = sorted(
    "هایشان هایمان هایتان هایشون هایمون هایتون هاشون هامون هاتون هایش هایم هایت هاش هام هات "
    "هایی های ها ترین تری تر شان مان تان شون مون تون ام ات اش ای ی".split(),
    key=len,
    reverse=True,
)
_SUFFIX = re.compile("(?:" + "|".join(_SUFFIXES) + ")$")
_PERSIAN_WORD = re.compile("^[\u0620-\u064a\u066e-\u06d3]+$")
_SHORTEST_STEM = 3


def is_persian(word: str) -> bool:
    """Tell whether `word` is written in the Arabic script alone."""
    return _PERSIAN_WORD.match(word) is not None


def stem(word: str) -> str:
    """Return `word` without one plural, comparative or possessive ending.

    A light stemmer: at least three letters stay, so that short words keep their identity.
    """
    match = _SUFFIX.search(word)
    # The expression finds the leftmost ending, so the longest that fits is taken.
    if match and match.start() >= _SHORTEST_STEM:
        return word[: match.start()]
    return word
