"""Guess the language of a page from the scripts of its letters."""

import re

# Enough text to judge by, and a bound on the work for a huge page.
SAMPLE_CHARS = 40_000
# Technical Persian and Chinese prose is full of Latin names, so a fifth of the letters is enough.
MIN_SHARE = 0.2
# Japanese prose mixes kana into Han; Chinese prose has next to none.
MIN_KANA_SHARE = 0.05

_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")
_ARABIC = re.compile(
    r"[\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc]"
)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA = re.compile(r"[\u3041-\u309f\u30a1-\u30ff]")
_HANGUL = re.compile(r"[\u1100-\u11ff\uac00-\ud7af]")
_THAI = re.compile(r"[\u0e01-\u0e4e]")
_TAG = re.compile(r"([A-Za-z]{2,3})(?:[-_][A-Za-z0-9]{1,8})*")


def primary_language(tag: str) -> str | None:
    """Return `fa` for `fa-IR`; None when the tag is no language tag."""
    match = _TAG.fullmatch(tag.strip())
    return match.group(1).lower() if match else None


def guess_language(prose: str) -> str:
    """Return `fa`, `zh`, `ja`, `ko`, `th` or `en` by the share of each script."""
    sample = prose[:SAMPLE_CHARS]
    latin, arabic, han, kana, hangul, thai = (
        sum(1 for _ in pattern.finditer(sample))
        for pattern in (_LATIN, _ARABIC, _HAN, _KANA, _HANGUL, _THAI)
    )
    # One Han, kana or Hangul character stands for about two Latin letters.
    total = latin + arabic + thai + 2 * (han + kana + hangul)
    shares = {
        "fa": arabic,
        "th": thai,
        "ko": 2 * hangul,
        "ja" if kana > MIN_KANA_SHARE * (han + kana) else "zh": 2 * (han + kana),
    }
    language, count = max(shares.items(), key=lambda item: item[1])
    return language if total and count / total >= MIN_SHARE else "en"
