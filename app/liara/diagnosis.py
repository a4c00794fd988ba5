"""From a pasted log to its root cause: signature, error class, platform, fix and pages.

Steps: keep the tail, mask secrets, clean, find what each line says, choose the cause.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from app.liara.log_cleaning import MAX_LINES, clean_lines, strip_terminal_codes
from app.liara.log_reading import LogLines, best_unknown_line, read_lines
from app.liara.platforms import PLATFORMS
from app.liara.secrets import mask_secrets
from app.liara.signatures import (
    Database,
    ErrorClass,
    Phase,
    PlatformClue,
    Signatures,
    load_signatures,
    pages_for,
)

MAX_LOG_CHARS = 20_000
MAX_SIGNATURE_CHARS = 200
MAX_QUERY_CHARS = 200
# Read before the tail, so that a secret which the cut goes through is seen whole.
_MARGIN_CHARS = 8_000
# A pattern that matches more often than this says nothing new.
_MAX_HITS = 40
_UNKNOWN_QUERY_WORDS = 14
# An error that takes several lines: npm prints its code first and its meaning below.
_SAME_MESSAGE_LINES = 12
# How much of a long line is kept before the words that matter.
_LEAD_CHARS = 80
# A warning is not why a build failed, unless nothing else is known.
_WARNING_PENALTY = 3

_QUERY_NOISE = re.compile(
    r"(?:[A-Za-z]:)?[\\/][\w.\-/\\@]+|https?://\S+|0x[0-9a-fA-F]+|\*{3}|\b[0-9a-f]{12,}\b|\d+(?:[.:]\d+)*"
)
_QUERY_WORD = re.compile(r"[^\W\d_][\w.\-\u200c]*[^\W_]")
_LEADING_MARK = re.compile(r"^[\s│┃|>*•✖✘×❌⨯→⚠-]+(?=\S)")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a log says: why it failed, how sure we are, and where to read on.

    `known` is false when no error class fits; signature and query are then the log's own words.
    `found_error` is false when the log shows no failure at all.
    """

    signature: str
    error_class: str | None
    title: str
    phase: Phase | None
    platform: str | None
    database: str | None
    fix: str
    fix_fa: str
    query: str
    pages: tuple[str, ...]
    known: bool
    found_error: bool
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Hit:
    """A line that an error class matches, and where in it the words begin and end."""

    error: ErrorClass
    line: int
    rank: int
    pattern: int
    start: int
    end: int


def diagnose(log: str) -> Diagnosis:
    """Return the root cause of a failed build, deploy or run; never raises for any text."""
    signatures = load_signatures()
    truncated = len(log) > MAX_LOG_CHARS or log.strip().count("\n") >= MAX_LINES
    lines = read_lines(clean_lines(_readable(log)))
    hits = _find_hits(lines, signatures.classes)
    platform = _recognise_platform(lines, signatures.clues)
    best = min(hits, key=lambda hit: (hit.rank, lines.order[hit.line]), default=None)
    if best is not None:
        return _known(_clearest(best, hits, lines), lines, platform, signatures, truncated)
    return _unknown(lines, platform, truncated)


def _readable(log: str) -> str:
    """Return the end of the log with every secret masked, also those split by colour codes."""
    text = mask_secrets(log[-(MAX_LOG_CHARS + _MARGIN_CHARS) :])
    text = mask_secrets(strip_terminal_codes(text))
    if len(text) <= MAX_LOG_CHARS:
        return text if len(log) <= MAX_LOG_CHARS + _MARGIN_CHARS else _from_next_line(text)
    return _from_next_line(text[-MAX_LOG_CHARS:])


def _from_next_line(text: str) -> str:
    """Drop the first piece, which the cut may have left without the name of its secret."""
    cut = text.find("\n", 0, _MARGIN_CHARS)
    if cut < 0:
        cut = text.find(" ", 0, _MARGIN_CHARS)
    return text[cut + 1 :] if cut >= 0 else text[_MARGIN_CHARS:]


def _find_hits(lines: LogLines, classes: Sequence[ErrorClass]) -> list[_Hit]:
    found = [hit for error in classes for hit in _hits_of(error, lines)]
    present = {hit.error.id for hit in found}
    hits = [
        hit
        for hit in found
        if not hit.error.companions or present.intersection(hit.error.companions)
    ]
    if all(hit.line in lines.warnings and hit.error.phase == "build" for hit in hits):
        # Many builds that succeed print warnings: one explains a failure only where nothing
        # but the end of a cascade tells of it.
        return hits if best_unknown_line(lines) in lines.trailers else []
    return hits


def _hits_of(error: ErrorClass, lines: LogLines) -> Iterator[_Hit]:
    searches = [(pattern, lines.written) for pattern in error.exact_patterns]
    searches += [(pattern, lines.searchable) for pattern in error.patterns]
    for number, (pattern, text) in enumerate(searches):
        for match in islice(pattern.finditer(text), _MAX_HITS):
            line = bisect_right(lines.starts, match.start()) - 1
            if line in lines.harmless or "\n" in match[0]:
                continue
            # A class with companions is told by an announcement, which is no warning.
            warns = line in lines.warnings and not error.companions
            rank = error.rank + (_WARNING_PENALTY if warns else 0)
            start = match.start() - lines.starts[line]
            yield _Hit(error, line, rank, number, start, match.end() - lines.starts[line])


def _clearest(first: _Hit, hits: Sequence[_Hit], lines: LogLines) -> _Hit:
    """Return the hit beside the first one of the same class whose line says most."""
    near = [
        hit
        for hit in hits
        if hit.error is first.error and abs(hit.line - first.line) <= _SAME_MESSAGE_LINES
    ]
    return min(
        near,
        key=lambda hit: (hit.rank, hit.line in lines.trailers, hit.pattern, lines.order[hit.line]),
    )


def _recognise_platform(lines: LogLines, clues: Sequence[PlatformClue]) -> str | None:
    best: tuple[int, int] = (0, 0)
    platform = None
    for clue in clues:
        matches = [match for p in clue.patterns if (match := p.search(lines.everything))]
        if not matches:
            continue
        name = clue.platform or matches[0]["platform"]
        score = (clue.weight, len(matches))
        if name in PLATFORMS and score > best:
            best, platform = score, name
    return platform


def _recognise_database(line: str, text: str, databases: Sequence[Database]) -> Database | None:
    """Return the engine that the line names, else the one that the whole log names most."""
    for where in (line, text):
        counts = Counter(
            {
                position: sum(1 for clue in database.clues if clue.search(where))
                for position, database in enumerate(databases)
            }
        )
        position, count = counts.most_common(1)[0]
        if count:
            return databases[position]
    return None


def _known(
    hit: _Hit, lines: LogLines, platform: str | None, signatures: Signatures, truncated: bool
) -> Diagnosis:
    error = hit.error
    if platform is None and error.platforms:
        platform = error.platforms[0]
    sets = list(error.page_sets)
    database = None
    if error.is_database:
        context = lines.lowered[hit.line]
        database = _recognise_database(context, lines.everything, signatures.databases)
        sets.append(database.pages if database else signatures.unknown_database_pages)
    words = [error.query, database.title if database else "", platform or ""]
    return Diagnosis(
        signature=_signature(_around(lines.shown[hit.line], hit.start, hit.end)),
        error_class=error.id,
        title=error.title,
        phase=error.phase,
        platform=platform,
        database=database.id if database else None,
        fix=error.fix,
        fix_fa=error.fix_fa,
        query=" ".join(word for word in words if word)[:MAX_QUERY_CHARS],
        pages=pages_for(sets, platform),
        known=True,
        found_error=True,
        truncated=truncated,
    )


def _unknown(lines: LogLines, platform: str | None, truncated: bool) -> Diagnosis:
    line = best_unknown_line(lines)
    signature = _signature(lines.shown[line]) if line is not None else ""
    found = line is not None
    return Diagnosis(
        signature=signature,
        error_class=None,
        title="Unknown error" if found else "No error in this log",
        phase=None,
        platform=platform,
        database=None,
        fix="",
        fix_fa="",
        query=_query_from(signature, platform) if found else "",
        pages=(),
        known=False,
        found_error=found,
        truncated=truncated,
    )


def _around(line: str, start: int, end: int) -> str:
    """Return a long line from where the words that matter can be seen."""
    if end <= MAX_SIGNATURE_CHARS:
        return line
    clause = line.rfind(": ", max(0, start - _LEAD_CHARS), start)
    return line[clause + 2 if clause >= 0 else start :]


def _signature(line: str) -> str:
    text = _LEADING_MARK.sub("", line).strip()
    # Masked again: cleaning may have joined what stood apart.
    return " ".join(mask_secrets(text).split())[:MAX_SIGNATURE_CHARS].rstrip()


def _query_from(signature: str, platform: str | None) -> str:
    words = _QUERY_WORD.findall(_QUERY_NOISE.sub(" ", signature))
    kept = list(dict.fromkeys(words))[:_UNKNOWN_QUERY_WORDS]
    return " ".join([*kept, *([platform] if platform else [])])[:MAX_QUERY_CHARS]
