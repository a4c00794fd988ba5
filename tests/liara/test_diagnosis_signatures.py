import re
import re._constants as sre
import re._parser as sre_parser
from collections.abc import Iterable
from pathlib import Path

import pytest

from app.liara.diagnosis import MAX_LOG_CHARS, diagnose
from app.liara.platforms import PLATFORMS
from app.liara.secrets import mask_secrets
from app.liara.signatures import load_signatures, pages_for

SIGNATURES = load_signatures()
ALL_PATTERNS = [
    pattern
    for group in (SIGNATURES.classes, SIGNATURES.clues, SIGNATURES.databases)
    for entry in group
    for pattern in (
        *getattr(entry, "patterns", ()),
        *getattr(entry, "exact_patterns", ()),
        *getattr(entry, "clues", ()),
    )
]
# A repeat may try this many lengths, and two gaps in a row may try their product.
MAX_REPEAT = 200
MAX_WAYS = 40_000
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
PERSIAN = re.compile("[\u0600-\u06ff]")


def ways(parsed: Iterable[tuple[object, object]], *, in_repeat: bool = False) -> int:
    """Return in how many ways a pattern may divide one place of a text; raise if unbounded."""
    product = 1
    for operation, argument in parsed:
        if operation in REPEATS:
            least, most, body = argument
            assert not in_repeat, "a repeat inside a repeat"
            assert most is not sre.MAXREPEAT, "an unbounded repeat"
            assert most <= MAX_REPEAT, f"a repeat of {most}"
            product *= (most - least + 1) * ways(body, in_repeat=most > 1)
        elif operation is sre.BRANCH:
            product *= max(ways(branch, in_repeat=in_repeat) for branch in argument[1])
        elif operation is sre.SUBPATTERN:
            product *= ways(argument[-1], in_repeat=in_repeat)
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            product *= ways(argument[1], in_repeat=in_repeat)
    return product


def test_there_are_at_least_60_classes_each_with_its_own_name() -> None:
    names = [error.id for error in SIGNATURES.classes]
    assert len(names) >= 60
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("error", SIGNATURES.classes, ids=lambda error: error.id)
def test_every_class_is_complete(error: object) -> None:
    assert len(error.title) <= 80
    assert error.title.isascii()
    assert error.fix.isascii()
    assert len(error.fix) > 30
    assert PERSIAN.search(error.fix_fa)
    assert not re.search("[يىك]", error.fix_fa + error.query), "Arabic letters in Persian text"
    assert 0 <= error.rank <= 4
    assert error.patterns
    assert set(error.platforms) <= set(PLATFORMS)
    assert set(error.companions) <= {other.id for other in SIGNATURES.classes}


@pytest.mark.parametrize("platform", [None, *PLATFORMS])
def test_every_class_has_pages_on_every_platform(platform: str | None) -> None:
    for error in SIGNATURES.classes:
        sets = (*error.page_sets, SIGNATURES.unknown_database_pages)
        pages = pages_for(sets if error.is_database else error.page_sets, platform)
        assert pages, error.id
        assert all(page.startswith("https://docs.liara.ir/") for page in pages)
        assert all(page.endswith("/") for page in pages)


@pytest.mark.parametrize("pattern", ALL_PATTERNS, ids=lambda pattern: pattern.pattern[:50])
def test_no_pattern_can_backtrack_without_bound(pattern: re.Pattern[str]) -> None:
    assert ways(sre_parser.parse(pattern.pattern)) <= MAX_WAYS


@pytest.mark.parametrize("unsafe", ["(a+)+b", "a.*b", "(?:ab{0,9}){0,9}", "a.{0,500}b"])
def test_the_check_of_patterns_finds_unsafe_ones(unsafe: str) -> None:
    with pytest.raises(AssertionError):
        ways(sre_parser.parse(unsafe))


def test_patterns_search_lower_case_text() -> None:
    for error in SIGNATURES.classes:
        for pattern in error.patterns:
            literal = re.sub(r"\\.", "", pattern.pattern)
            assert literal == literal.lower(), (error.id, pattern.pattern)


HOSTILE = [
    "a",
    "A",
    " ",
    "\t",
    "\n",
    "\r",
    "\x1b[",
    "\x1b]",
    "\\u001b[",
    "[1;",
    "1",
    "1:",
    "12:30:45 ",
    "2025-01-01 ",
    "#1 ",
    "::",
    "://",
    "://a@",
    "/",
    "\\",
    "-",
    "=",
    "'",
    '"',
    "password=",
    "password='",
    "key_key",
    "eyJ-",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "postgres://a:",
    "redis-cli ",
    "mysql -p",
    "Error: ",
    "error.",
    "a.b.",
    "ExceptionException",
    "at a (",
    " ---> ",
    "---> x\n",
    "Caused by: x\n",
    "Traceback (most recent call last):\n",
    "econnrefused ",
    "connection refused ",
    "mongo",
    "could not ",
    "no such file or directory ",
    "npm error ",
    "(",
    "((",
    "{",
    "%",
    "^",
    "^\n",
    "خطا",
    "\u200c",
    "\ud800",
    "\U000e0041",
    "| ",
    "exit code 1 ",
    "#0 a: b(",
    "env ",
    "missing ",
    "e: failed to fetch ",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_log_of_one_repeated_piece_is_read_to_its_end(piece: str) -> None:
    # A pattern that backtracks without bound would keep this from ever returning.
    log = (piece * MAX_LOG_CHARS)[:MAX_LOG_CHARS]
    assert len(diagnose(log).signature) <= 200
    assert len(mask_secrets(log)) <= 2 * len(log)


def test_every_page_exists_in_the_corpus(official_corpus: Path) -> None:
    known = set()
    for file in official_corpus.rglob("*.md"):
        first_line = file.read_text(encoding="utf-8-sig").partition("\n")[0]
        known.add(first_line.removeprefix("Original link: ").strip())
    assert SIGNATURES.all_pages() - known == set()
