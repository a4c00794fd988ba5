"""The schema of liara.json and what it has to say about a file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from rapidfuzz import fuzz, process

from app.data_files import data_path
from app.errors import UnknownPlatformError
from app.liara.manifest_finding import (
    MANIFEST_PAGE,
    Finding,
    PathPart,
    clean,
    json_path,
    quote,
    show,
)
from app.liara.manifest_parse import walk
from app.liara.platforms import PLATFORMS, alias_note, resolve_platform

Schema: TypeAlias = Mapping[str, Any]

# A key typed wrong by a letter or two scores above this; other words stay below.
TYPO_MIN_SCORE = 75
# Values under these keys may be secrets: findings never repeat them.
SECRET_ROOTS = frozenset({"envs", "api-token"})
_TYPE_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


@cache
def manifest_schema() -> Schema:
    """Return the JSON Schema of liara.json, read once."""
    raw: Schema = json.loads(data_path("liara", "liara.schema.json").read_text(encoding="utf-8"))
    return raw


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(manifest_schema())


def schema_at(path: Sequence[PathPart]) -> Schema | None:
    """Return the part of the schema that describes a path, None where it knows none."""
    node: Schema = manifest_schema()
    for part in path:
        child = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
        if not isinstance(child, dict):
            return None
        node = child
    return node


def page_of(path: Sequence[PathPart]) -> str:
    """Return the official page for a path, or for the nearest key above it."""
    for length in range(len(path), -1, -1):
        node = schema_at(path[:length])
        if node is not None and "x-page" in node:
            return str(node["x-page"])
    return MANIFEST_PAGE


def finding(
    path: Sequence[PathPart], severity: Any, problem: str, allowed: str | None = None
) -> Finding:
    """Build a finding with the page that the schema names for its path."""
    return Finding(json_path(path), severity, problem, allowed, page_of(path))


def schema_findings(value: object, platform: str | None) -> Iterator[Finding]:
    """Check a parsed file against the schema; unknown keys get the nearest known one."""
    if not isinstance(value, dict):
        yield finding((), "error", f"The file holds {show(value)}.", "One object: { … }.")
        return
    for error in _validator().iter_errors(value):
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            yield from _unknown_keys(error, path, platform)
        elif error.validator == "required":
            yield from _missing_keys(error, path)
        else:
            yield finding(path, "error", _problem(error, path), allowed_values(path))
    yield from _deprecated(value)


def allowed_values(path: Sequence[PathPart]) -> str | None:
    """Say in words what may stand at a path."""
    node = schema_at(path)
    if node is None:
        return "A string." if path[:1] == ("envs",) else None
    return describe_allowed(node)


def describe_allowed(node: Schema) -> str | None:
    """Say in words which values a part of the schema accepts."""
    if "enum" in node:
        return "One of: " + ", ".join(show(value).strip('"') for value in node["enum"]) + "."
    types = node.get("type")
    if types is None:
        return None
    names = [_TYPE_NAMES[name] for name in ([types] if isinstance(types, str) else types)]
    words = " or ".join(names)
    if "maximum" in node:
        words += f" from {node['minimum']} to {node['maximum']}"
    elif "minimum" in node:
        words += f", at least {node['minimum']}"
    if node.get("$ref", "").endswith("/timezone"):
        words += " such as Asia/Tehran, Europe/Berlin or UTC"
    if "x-values" in node:
        words += ": " + ", ".join(node["x-values"])
    items = node.get("items", {})
    if items.get("type") == "string":
        words += " of strings"
    return words[0].upper() + words[1:] + "."


def _problem(error: ValidationError, path: Sequence[PathPart]) -> str:
    secret = bool(path) and path[0] in SECRET_ROOTS
    shown = "The value" if secret else show(error.instance)
    match error.validator:
        case "type":
            return f"{shown} is of the wrong type: {_TYPE_NAMES[_json_type(error.instance)]}."
        case "enum":
            return f"{shown} is not known here.{_known_platform(error.instance, path)}"
        case "minimum" | "maximum" | "exclusiveMinimum":
            return f"{shown} is out of range."
        case "minLength" | "minItems":
            return "The value is empty."
        case "pattern":
            return f"{shown} has the wrong form."
    return f"{shown} is not allowed here."


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
    return "object"


def _known_platform(value: object, path: Sequence[PathPart]) -> str:
    if tuple(path) != ("platform",) or not isinstance(value, str):
        return ""
    try:
        hint = f" Write {quote(resolve_platform(value).name)}."
    except UnknownPlatformError:
        return ""
    note = alias_note(value)
    return f"{hint} {note.note}" if note else hint


def _missing_keys(error: ValidationError, path: tuple[PathPart, ...]) -> Iterator[Finding]:
    instance: Any = error.instance
    required: Any = error.validator_value
    for key in required:
        # Each missing key is one error of the validator: report the one that it speaks of.
        if key not in instance and error.message.startswith(repr(key)):
            yield finding(
                (*path, key), "error", f"{quote(key)} is missing.", allowed_values((*path, key))
            )


def _unknown_keys(
    error: ValidationError, path: tuple[PathPart, ...], platform: str | None
) -> Iterator[Finding]:
    schema: Any = error.schema
    instance: Any = error.instance
    known: Mapping[str, Schema] = schema["properties"]
    for key, value in instance.items():
        if key in known or (not path and key == "$schema"):
            continue
        hint = _meant_key(key, value, path, known, platform)
        problem = f"Unknown key {quote(key)}.{hint}"
        severity = "error" if hint else "warning"
        yield finding((*path, key), severity, problem, _known_keys(known, path, platform))


def _known_keys(
    known: Mapping[str, Schema], path: tuple[PathPart, ...], platform: str | None
) -> str:
    names = [
        name
        for name, node in known.items()
        if not node.get("deprecated") and (path or name not in PLATFORMS or name == platform)
    ]
    rest = "" if path or platform else ", and the object of the platform"
    return f"Keys here: {', '.join(names)}{rest}."


def _meant_key(
    key: str,
    value: object,
    path: tuple[PathPart, ...],
    known: Mapping[str, Schema],
    platform: str | None,
) -> str:
    folded = _fold(key)
    for name, node in known.items():
        if folded in (_fold(name), *map(_fold, node.get("x-also-called", ()))):
            return f" Did you mean {quote(name)}?"
    if not path and isinstance(value, dict) and (own := _object_of_alias(key)):
        return f" The object of that platform is called {quote(own)}."
    if elsewhere := _same_key_elsewhere(folded, path, platform):
        of_any = not path and platform is None and elsewhere.split(".")[1] in PLATFORMS
        place = "in the platform's object, such as" if of_any else "at"
        return f" It belongs {place} {elsewhere}."
    nearest = process.extractOne(
        folded[:40], [*known], processor=_fold, scorer=fuzz.ratio, score_cutoff=TYPO_MIN_SCORE
    )
    return f" Did you mean {quote(nearest[0])}?" if nearest else ""


def _object_of_alias(key: str) -> str | None:
    try:
        return resolve_platform(key).config_key
    except UnknownPlatformError:
        return None


def _same_key_elsewhere(
    folded: str, path: tuple[PathPart, ...], platform: str | None
) -> str | None:
    top: Mapping[str, Schema] = manifest_schema()["properties"]
    own = path[0] if path else platform
    order = sorted(top, key=lambda name: name != own)
    places: list[tuple[tuple[str, ...], Schema]] = [((name,), top[name]) for name in top if path]
    for parent in order:
        if parent in PLATFORMS and platform not in (None, parent):
            continue
        node = top[parent].get("items") or top[parent]
        places += [((parent, child), sub) for child, sub in node.get("properties", {}).items()]
    for place, node in places:
        if node.get("deprecated"):
            continue
        if folded in (_fold(place[-1]), *map(_fold, node.get("x-also-called", ()))):
            step = "[]" if top[place[0]].get("type") == "array" and len(place) > 1 else ""
            return json_path(place[:1]) + step + json_path(place[1:])[1:]
    return None


def _deprecated(value: Mapping[str, object]) -> Iterator[Finding]:
    for path, _part in walk(value):
        node = schema_at(path)
        if node is not None and node.get("deprecated"):
            text = f"{quote(str(path[-1]))} is not the documented way. {node['description']}"
            yield finding(path, "warning", clean(text, limit=400))


def _fold(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")
