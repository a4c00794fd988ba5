"""Front matter: the metadata block at the head of a Markdown file, never its body."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

# Real front matter is short; a longer block is body text between two rules. Both parsers take
# many seconds for a megabyte.
MAX_LINES = 400
MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The scalar fields of a front matter block and how many lines it takes (0: none)."""

    fields: Mapping[str, str]
    line_count: int


NO_FRONT_MATTER = FrontMatter({}, 0)


def read_front_matter(lines: list[str]) -> FrontMatter:
    """Read a YAML (`---`) or TOML (`+++`) block that starts on the first line.

    Two thematic breaks around prose are not front matter: the block must hold a mapping, or be
    broken YAML whose first line looks like `key: value`.
    """
    if not lines:
        return NO_FRONT_MATTER
    opening = lines[0].rstrip()
    if opening not in ("---", "+++"):
        return NO_FRONT_MATTER
    closings = ("---", "...") if opening == "---" else ("+++",)
    for index, line in enumerate(lines[1 : MAX_LINES + 1], start=1):
        if line.rstrip() in closings:
            block = lines[1:index]
            if sum(map(len, block)) > MAX_CHARS:
                return NO_FRONT_MATTER
            fields = _yaml_fields(block) if opening == "---" else _toml_fields(block)
            return NO_FRONT_MATTER if fields is None else FrontMatter(fields, index + 1)
    return NO_FRONT_MATTER


def _yaml_fields(block: list[str]) -> dict[str, str] | None:
    try:
        # BaseLoader keeps every scalar as text: no dates, numbers or objects are made.
        loaded = yaml.load("\n".join(block), Loader=yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
        # The last two come from escapes and numbers that no character or int can hold.
        return _plain_fields(block) if _looks_like_key(block) else None
    return _scalars(loaded)


def _plain_fields(block: list[str]) -> dict[str, str]:
    """Read `key: value` lines of YAML that is broken, as by a colon in an unquoted title."""
    fields: dict[str, str] = {}
    for line in block:
        key, colon, value = line.partition(": ")
        if colon and _is_key(key):
            fields.setdefault(key.lower(), value.strip().strip("\"'"))
    return fields


def _toml_fields(block: list[str]) -> dict[str, str] | None:
    try:
        return _scalars(tomllib.loads("\n".join(block)))
    except (ValueError, RecursionError):
        return {}


def _scalars(loaded: object) -> dict[str, str] | None:
    if loaded is None or loaded == "":
        return {}
    if not isinstance(loaded, dict):
        return None
    return {
        key.lower(): _encodable(value).strip()
        for key, value in loaded.items()
        if isinstance(key, str) and isinstance(value, str)
    }


def _encodable(text: str) -> str:
    """Replace lone surrogates, which an escape can write and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _looks_like_key(block: list[str]) -> bool:
    first = next((line for line in block if line.strip()), "")
    key, colon, _ = first.partition(":")
    return bool(colon) and _is_key(key)


def _is_key(text: str) -> bool:
    return text.replace("-", "").replace("_", "").isalnum()
