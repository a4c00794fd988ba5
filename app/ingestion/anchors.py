"""Heading anchors by the rules of github-slugger, which GitHub and most site generators share."""

import re
import unicodedata

_EXPLICIT_ID = re.compile(r"\s*\{\s*#([^\s{}#]{1,200})\s*\}\s*$")
_KEPT_CATEGORIES = frozenset({"Nd", "Nl", "Pc"})


class AnchorMaker:
    """Give the headings of one document distinct anchors, in document order."""

    def __init__(self) -> None:
        """Start a document without anchors."""
        self._seen: dict[str, int] = {}

    def anchor(self, heading: str) -> str:
        """Return the slug of a heading; a repeated one gets -1, -2, ..."""
        slug = slugify(heading)
        unique = slug
        while unique in self._seen:
            self._seen[slug] += 1
            unique = f"{slug}-{self._seen[slug]}"
        self._seen[unique] = 0
        return unique


def slugify(heading: str) -> str:
    """Return a heading in lower case, with hyphens for spaces and without punctuation.

    ZWNJ is dropped, as github-slugger does: it is no letter, mark or digit.
    """
    lowered = unicodedata.normalize("NFC", heading).strip().lower()
    return "".join("-" if char == " " else char for char in lowered if _is_kept(char))


def split_explicit_id(heading: str) -> tuple[str, str | None]:
    """Split `Heading {#id}` into the heading and the id that its author chose."""
    match = _EXPLICIT_ID.search(heading)
    if match is None:
        return heading, None
    return heading[: match.start()], match.group(1)


def _is_kept(char: str) -> bool:
    category = unicodedata.category(char)
    return char in " -" or category[0] in "LM" or category in _KEPT_CATEGORIES
