"""The platforms of Liara: their names, aliases and official pages."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from rapidfuzz import fuzz, process

from app.data_files import data_path
from app.errors import UnknownPlatformError

# How much of an unknown name an error message repeats.
MAX_ECHO_CHARS = 80
# Names typed wrong by a letter or two score above this; unrelated words stay below.
NEAREST_MIN_SCORE = 60

# Arabic yeh and kaf to their Persian forms, so that either keyboard finds the alias.
_LETTERS = str.maketrans({"ي": "ی", "ى": "ی", "ك": "ک"})
_SEPARATORS = re.compile(r"[\s._\-\u200c\u200d]+")


@dataclass(frozen=True, slots=True)
class Platform:
    """One platform: what `liara.json` calls it and which official pages explain it.

    `pages` maps a role (getting_started, deploy, environment, disk, domain, database,
    troubleshooting) to URLs, best first. `default_port` is None where the CLI asks.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    config_key: str | None
    docs_prefix: str
    default_port: int | None
    port_note: str
    brings_web_server: bool
    runs_cron: bool
    cron_page: str | None
    disk_path: Literal["relative", "absolute"] | None
    pages: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AliasNote:
    """What a person who used this alias should know, with the page that says more."""

    note: str
    page: str


def resolve_platform(name: str) -> Platform:
    """Return the platform of a name or alias, whatever its case, dots, dashes and spaces.

    Raises:
        UnknownPlatformError: No platform has it; the message lists the nearest and all names.
    """
    key = _fold(name)
    by_alias = _facts().by_alias
    if key in by_alias:
        return PLATFORMS[by_alias[key]]
    shown = name.encode("utf-8", "replace").decode("utf-8").strip()[:MAX_ECHO_CHARS]
    nearest = _nearest(key)
    hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    raise UnknownPlatformError(
        f"Liara has no platform {shown!r}.{hint} The platforms are: {', '.join(PLATFORMS)}."
    )


def alias_note(name: str) -> AliasNote | None:
    """Return the remark on an alias that needs one, such as `wordpress`."""
    return _facts().alias_notes.get(_fold(name))


@dataclass(frozen=True, slots=True)
class _Facts:
    platforms: Mapping[str, Platform]
    by_alias: Mapping[str, str]
    alias_notes: Mapping[str, AliasNote]


class _LazyPlatforms(Mapping[str, Platform]):
    """Reads the data file at the first look, not at import."""

    def __getitem__(self, name: str) -> Platform:
        return _facts().platforms[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_facts().platforms)

    def __len__(self) -> int:
        return len(_facts().platforms)


PLATFORMS: Mapping[str, Platform] = _LazyPlatforms()


@cache
def _facts() -> _Facts:
    raw = json.loads(data_path("liara", "platforms.json").read_text(encoding="utf-8"))
    platforms = {entry["name"]: _platform(entry) for entry in raw["platforms"]}
    by_alias: dict[str, str] = {}
    for platform in platforms.values():
        for alias in (platform.name, platform.title, *platform.aliases):
            by_alias[_fold(alias)] = platform.name
    notes = {_fold(alias): AliasNote(**note) for alias, note in raw["alias_notes"].items()}
    return _Facts(MappingProxyType(platforms), by_alias, notes)


def _platform(entry: dict[str, Any]) -> Platform:
    pages = {role: tuple(urls) for role, urls in entry["pages"].items()}
    fields = {**entry, "aliases": tuple(entry["aliases"]), "pages": MappingProxyType(pages)}
    return Platform(**fields)


def _fold(name: str) -> str:
    text = unicodedata.normalize("NFKC", name).casefold().translate(_LETTERS)
    return _SEPARATORS.sub("", text)


def _nearest(key: str) -> list[str]:
    found = process.extract(
        key[:MAX_ECHO_CHARS],
        list(_facts().by_alias),
        scorer=fuzz.ratio,
        limit=5,
        score_cutoff=NEAREST_MIN_SCORE,
    )
    names = [_facts().by_alias[alias] for alias, _score, _index in found]
    return list(dict.fromkeys(names))[:3]
