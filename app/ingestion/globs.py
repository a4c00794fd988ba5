"""Path globs: which files of a source belong to a document set, and to which layer.

A glob covers the whole path. `*` and `?` stay inside a folder, `**` crosses folders, `[ab]` is
one of the letters, `{md,mdx}` one of the words. A glob that ends in `/` covers the whole folder.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

MAX_GLOB_CHARS = 1_000
MAX_ALTERNATIVES = 64

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def check_glob(pattern: str) -> None:
    """Raise ValueError, with a sentence that helps, for a glob that cannot be meant."""
    if not pattern.strip():
        raise ValueError("an empty glob matches nothing")
    if len(pattern) > MAX_GLOB_CHARS:
        raise ValueError(f"a glob has at most {MAX_GLOB_CHARS} characters")
    if not pattern.isprintable():
        raise ValueError("a glob holds no control characters")
    if pattern.startswith("!"):
        raise ValueError(f"{pattern!r}: list what is left out under 'exclude', not with '!'")
    if pattern.startswith(("/", "~")) or re.match(r"[A-Za-z]:", pattern):
        raise ValueError(f"{pattern!r} is absolute; globs are relative to the source's root")
    if ".." in pattern.split("/"):
        raise ValueError(f"{pattern!r} leaves the source's root")
    for alternative in _alternatives(pattern):
        _translated(alternative)


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for relative POSIX paths: does any of the globs cover the whole path?"""
    expression = _compiled(tuple(patterns))
    return lambda path: expression.fullmatch(path) is not None


def folder_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for folders that lie wholly in one of the globs, so need not be visited."""
    tails = [_with_folder_tail(pattern) for pattern in patterns]
    return path_matcher([tail.removesuffix("/**") for tail in tails if tail.endswith("/**")])


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = [each for pattern in patterns for each in _alternatives(pattern)]
    # An empty set of globs matches no path: (?!) never matches.
    return re.compile("|".join(map(_translated, alternatives)) or r"(?!)", re.DOTALL)


def _alternatives(pattern: str) -> list[str]:
    """Expand `{a,b}`, also nested."""
    waiting, done = [_with_folder_tail(pattern)], []
    while waiting:
        current = waiting.pop()
        match = _BRACES.search(current)
        if match is None:
            done.append(current)
            continue
        words = match.group(1).split(",")
        waiting += [current[: match.start()] + word + current[match.end() :] for word in words]
        if len(waiting) + len(done) > MAX_ALTERNATIVES:
            raise ValueError(f"{pattern!r} stands for more than {MAX_ALTERNATIVES} globs")
    return done


def _with_folder_tail(pattern: str) -> str:
    pattern = pattern.removeprefix("./")
    return pattern + "**" if pattern.endswith("/") else pattern


def _translated(pattern: str) -> str:
    segments = re.sub(r"(?:\*\*/)+", "**/", pattern).split("/")
    parts = []
    for number, segment in enumerate(segments):
        is_last = number == len(segments) - 1
        if segment == "**":
            parts.append(".+" if is_last else "(?:.+/)?")
        else:
            parts.append(_segment(segment, pattern) + ("" if is_last else "/"))
    return "".join(parts)


def _segment(segment: str, pattern: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(segment):
        char = segment[position]
        position += 1
        if char == "*":
            if not parts or parts[-1] != "[^/]*":
                parts.append("[^/]*")
        elif char == "?":
            parts.append("[^/]")
        elif char == "[":
            is_negated = segment.startswith("!", position)
            end = segment.find("]", position + 1 + is_negated)
            if end < 0:
                raise ValueError(f"{pattern!r}: '[' is never closed")
            parts.append(_letters(segment[position:end], pattern))
            position = end + 1
        else:
            parts.append(re.escape(char))
    return "".join(parts)


def _letters(inside: str, pattern: str) -> str:
    negated = inside.startswith("!")
    escaped = re.sub(r"([\\^\]\[&~|])", r"\\\1", inside[1:] if negated else inside)
    # Two hyphens would be a set operation one day: the first one is meant as a letter.
    escaped = escaped.replace("--", r"\--")
    letters = rf"(?!/)[{'^' if negated else ''}{escaped}]"
    try:
        re.compile(letters)
    except re.error:
        raise ValueError(f"{pattern!r}: bad letters in [{inside}]") from None
    return letters
