"""The error classes of data/liara/log_signatures.toml: their patterns, fixes and official pages."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from app.data_files import data_path
from app.liara.platforms import PLATFORMS

Phase = Literal["build", "runtime", "deploy"]
MAX_PAGES = 6


@dataclass(frozen=True, slots=True)
class PageSet:
    """Pages of one topic, best first: those of a platform, those for everybody, and the rest."""

    by_platform: Mapping[str, tuple[str, ...]]
    first: tuple[str, ...]
    rest: tuple[str, ...]

    def best(self, platform: str | None) -> tuple[str, ...]:
        """Return the pages of this platform and those that suit every platform as well."""
        own = self.by_platform.get(platform, ()) if platform else ()
        return own + self.first


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """One kind of failure: how a log betrays it and what helps.

    A lower rank lies nearer to the root cause. The class counts only together with one of
    `companions`, if there are any. `patterns` search the log in lower case, `exact_patterns` as
    it was written.
    """

    id: str
    title: str
    phase: Phase
    rank: int
    patterns: tuple[re.Pattern[str], ...]
    exact_patterns: tuple[re.Pattern[str], ...]
    platforms: tuple[str, ...]
    companions: tuple[str, ...]
    is_database: bool
    query: str
    fix: str
    fix_fa: str
    page_sets: tuple[PageSet, ...]


@dataclass(frozen=True, slots=True)
class Database:
    """A database engine: what betrays it in a log, and the pages on connecting to it."""

    id: str
    title: str
    clues: tuple[re.Pattern[str], ...]
    pages: PageSet


@dataclass(frozen=True, slots=True)
class PlatformClue:
    """Patterns that betray a platform; `platform` is None where a named group says it."""

    platform: str | None
    weight: int
    patterns: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Signatures:
    """Everything that log_signatures.toml says."""

    classes: tuple[ErrorClass, ...]
    databases: tuple[Database, ...]
    clues: tuple[PlatformClue, ...]
    unknown_database_pages: PageSet

    def all_pages(self) -> frozenset[str]:
        """Return every URL that a diagnosis can name."""
        sets = [page_set for error in self.classes for page_set in error.page_sets]
        sets += [database.pages for database in self.databases]
        sets.append(self.unknown_database_pages)
        return frozenset(url for page_set in sets for url in _urls(page_set))


def pages_for(page_sets: Iterable[PageSet], platform: str | None) -> tuple[str, ...]:
    """Return the platform's own pages first, then those for everybody, each once."""
    sets = tuple(page_sets)
    best = [url for page_set in sets for url in page_set.best(platform)]
    rest = [url for page_set in sets for url in page_set.rest]
    return tuple(dict.fromkeys(best + rest))[:MAX_PAGES]


@cache
def load_signatures() -> Signatures:
    """Read the signatures once; a mistake in the file raises at the first use."""
    path = data_path("liara", "log_signatures.toml")
    with path.open("rb") as file:
        data = tomllib.load(file)
    reader = _Reader(data["base_url"])
    page_sets = {name: reader.page_set(raw) for name, raw in data["page_set"].items()}
    return Signatures(
        classes=tuple(_error_class(raw, page_sets, reader) for raw in data["class"]),
        databases=tuple(
            Database(name, raw["title"], _patterns(raw["clues"]), reader.page_set(raw))
            for name, raw in data["database"].items()
        ),
        clues=tuple(
            PlatformClue(raw.get("platform"), raw["weight"], _patterns(raw["patterns"]))
            for raw in data["platform_clue"]
        ),
        unknown_database_pages=page_sets["database"],
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns the short paths of the file into URLs per platform."""

    base_url: str

    def page_set(self, raw: Mapping[str, Any]) -> PageSet:
        by_platform = {
            platform: tuple(self._platform_urls(raw, platform)) for platform in PLATFORMS
        }
        return PageSet(
            by_platform={platform: urls for platform, urls in by_platform.items() if urls},
            first=tuple(self.base_url + path for path in raw.get("first", ())),
            rest=tuple(self.base_url + path for path in raw.get("any", ())),
        )

    def _platform_urls(self, raw: Mapping[str, Any], platform: str) -> Iterator[str]:
        for path in raw.get(platform, ()):
            yield self.base_url + path
        folder = PLATFORMS[platform].docs_prefix.rstrip("/").rpartition("/")[2]
        for entry in raw.get("each", ()):
            rule = {"path": entry} if isinstance(entry, str) else entry
            if platform in rule.get("only", PLATFORMS) and platform not in rule.get("not", ()):
                yield self.base_url + rule["path"].format(folder)


def _error_class(
    raw: Mapping[str, Any], page_sets: Mapping[str, PageSet], reader: _Reader
) -> ErrorClass:
    if raw["phase"] not in get_args(Phase):
        raise ValueError(f"{raw['id']}: unknown phase {raw['phase']!r}")
    own = [reader.page_set(raw["pages"])] if "pages" in raw else []
    common = [page_sets[raw["page_set"]]] if "page_set" in raw else []
    return ErrorClass(
        id=raw["id"],
        title=raw["title"],
        phase=raw["phase"],
        rank=raw["rank"],
        patterns=_patterns(raw["patterns"]),
        exact_patterns=_patterns(raw.get("exact", ())),
        platforms=tuple(raw.get("platforms", ())),
        companions=tuple(raw.get("with", ())),
        is_database=raw.get("database", False),
        query=raw["query"],
        fix=raw["fix"],
        fix_fa=raw["fix_fa"],
        page_sets=(*own, *common),
    )


def _patterns(sources: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    # Logs are lower-cased first: a search that minds case is several times faster.
    return tuple(re.compile(source, re.MULTILINE) for source in sources)


def _urls(page_set: PageSet) -> Iterator[str]:
    yield from page_set.first
    yield from page_set.rest
    for urls in page_set.by_platform.values():
        yield from urls
