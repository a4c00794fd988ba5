"""From the text of a liara.json to its value, with the syntax faults that people really make.

`json.loads` alone decides what is JSON. Only when it refuses, a tolerant reader names the
faults (comments, trailing commas, single quotes ...) and mends them, so that the rest of the
file can still be checked.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from app.liara.manifest_finding import MANIFEST_PAGE, Finding, PathPart, clean, json_path, quote
from app.liara.manifest_repair import Places, TolerantReader, tokenize

Path: TypeAlias = tuple[PathPart, ...]

# A liara.json nests three levels; beyond this only hostile or broken input goes.
MAX_DEPTH = 20
MAX_SYNTAX_FINDINGS = 10
# JavaScript, which the CLI runs on, holds integers exactly up to here.
MAX_EXACT_INTEGER = 2**53
_SHORT_INTEGER_DIGITS = 18
_BOM = "\ufeff"

_REASONS = {
    "Expecting ',' delimiter": "A comma or a closing bracket is missing before this place.",
    "Expecting ':' delimiter": "A colon is missing between the key and its value.",
    "Expecting property name": "A key in double quotes is expected here.",
    "Expecting value": "A value is expected here.",
    "Extra data": "The object ends before this place: nothing may follow it.",
    "Illegal trailing comma": "A comma stands before a closing bracket.",
    "Invalid \\": "A backslash starts an unknown escape; write \\\\ for a backslash.",
    "Invalid control character": "A line break or tab stands inside a string; write \\n or \\t.",
    "Unterminated string": "A string is not closed.",
}


class JsonObject(dict[str, object]):
    """An object of the file that remembers which keys it had twice."""

    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedManifest:
    """The value of the file, None where it could not be read, and what was wrong in the text."""

    value: object
    readable: bool
    findings: tuple[Finding, ...]


def parse_manifest(content: str) -> ParsedManifest:
    """Read the file; a fault is a finding, never an exception."""
    findings: list[Finding] = []
    text = content
    if content.startswith(_BOM):
        text = content[1:]
        findings.append(_BOM_FINDING)
    places = Places(text)
    if not text.strip():
        findings.append(places.error(0, "The file is empty.", "At least {}."))
        return ParsedManifest(None, False, tuple(findings))
    tokens = tokenize(text)
    if _is_too_deep(tokens):
        problem = f"The file is nested deeper than {MAX_DEPTH} levels."
        findings.append(Finding("$", "error", problem, page=MANIFEST_PAGE))
        return ParsedManifest(None, False, tuple(findings))
    try:
        value = _loads(text)
    except ValueError as error:
        value, faults, readable = _mend(text, tokens, places, error)
        findings += faults
    else:
        readable = True
    findings += _value_findings(value) if readable else ()
    return ParsedManifest(value, readable, tuple(findings))


_BOM_FINDING = Finding(
    "$",
    "warning",
    "The file starts with a byte-order mark. The CLI skips it; other JSON readers stop at it.",
    "UTF-8 without a byte-order mark.",
    MANIFEST_PAGE,
    line=1,
    column=1,
)


def _loads(text: str) -> object:
    return json.loads(
        text,
        object_pairs_hook=_object,
        parse_constant=_refuse_constant,
        # int() of a very long number is refused by Python and means nothing in JavaScript.
        parse_int=lambda digits: (
            int(digits) if len(digits) <= _SHORT_INTEGER_DIGITS else float(digits)
        ),
    )


def _object(pairs: list[tuple[str, object]]) -> JsonObject:
    result = JsonObject(pairs)
    if len(result) < len(pairs):
        counts = Counter(key for key, _value in pairs)
        result.duplicates = tuple(key for key, count in counts.items() if count > 1)
    return result


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _is_too_deep(tokens: list[re.Match[str]]) -> bool:
    depth = 0
    for token in tokens:
        if token.lastgroup == "punctuation":
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token.group(), 0)
            if depth > MAX_DEPTH:
                return True
    return False


def _mend(
    text: str, tokens: list[re.Match[str]], places: Places, error: ValueError
) -> tuple[object, list[Finding], bool]:
    """Name the faults; return the value of the mended text if they were all of a kind to mend."""
    reader = TolerantReader(tokens, places)
    reader.read()
    findings = reader.faults[:MAX_SYNTAX_FINDINGS]
    if not reader.mendable:
        return None, findings, False
    mended = "".join(piece for piece, _offset in reader.pieces)
    try:
        return _loads(mended), findings or [places.error(0, str(error))], True
    except ValueError as remaining:
        offset = reader.original_offset(getattr(remaining, "pos", 0), len(text))
        findings.append(places.error(offset, _reason(str(remaining), text[offset:])))
    return None, findings, False


def _reason(message: str, rest: str) -> str:
    if not rest.strip():
        return "The file ends too early: a bracket or a quote is not closed."
    known = (reason for start, reason in _REASONS.items() if message.startswith(start))
    return next(known, clean(message))


def _value_findings(value: object) -> Iterator[Finding]:
    for path, part in walk(value):
        for place, problem, allowed in _value_faults(path, part):
            yield Finding(json_path(place), "error", problem, allowed, MANIFEST_PAGE)


def _value_faults(path: Path, part: object) -> Iterator[tuple[Path, str, str | None]]:
    if isinstance(part, JsonObject):
        for key in part.duplicates:
            problem = f"The key {quote(key)} stands here more than once; only the last counts."
            yield (*path, key), problem, "Each key once."
        if any(_has_surrogate(key) for key in part):
            yield path, "A key holds half a character (a lone surrogate).", None
    elif isinstance(part, str) and _has_surrogate(part):
        yield path, "The text holds half a character (a lone surrogate).", None
    elif isinstance(part, float) and (math.isinf(part) or abs(part) > MAX_EXACT_INTEGER):
        yield path, "The number is too large to be kept exactly.", None


def walk(value: object) -> Iterator[tuple[Path, object]]:
    """Yield every value of a JSON tree with its path, parents first."""
    stack: list[tuple[Path, object]] = [((), value)]
    while stack:
        path, part = stack.pop()
        yield path, part
        if isinstance(part, dict):
            stack.extend(((*path, key), child) for key, child in reversed(part.items()))
        elif isinstance(part, list):
            stack.extend(((*path, i), part[i]) for i in range(len(part) - 1, -1, -1))


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
