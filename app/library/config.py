"""The JSON config: document sets, layers and defaults, checked until every error names its key.

The structure is held by data/config.schema.json, which editors read too; what a schema cannot
say (globs, ids that collide, the default) is checked here.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from app.data_files import data_path
from app.errors import ConfigError
from app.ingestion.sources import check_glob, is_git_source
from app.library.schedule import Schedule
from app.models import DocumentSetSpec, Layer

DEFAULT_TOP_K = 8
DEFAULT_CHUNK_MAX_CHARS = 1500
DEFAULT_MAX_CONTEXT_CHARS = 8000
ALL_LAYERS = "all"
MAX_SETS = 1_000
"""Each set costs a look every second and its index in memory."""

# Predecessor configs of an earlier form name the defaults at the top level.
_OLD_DEFAULT_KEYS = {
    "default_docs": "docs",
    "embedding_model": "embedding_model",
    "top_k": "top_k",
    "chunk_max_chars": "chunk_max_chars",
}
_SET_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
# Windows refuses these as folder names, with any extension.
_RESERVED_ON_DISK = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SetOptions:
    """A document set with what is only of interest while serving it."""

    spec: DocumentSetSpec
    top_k: int = DEFAULT_TOP_K
    max_context_chars: int = DEFAULT_MAX_CONTEXT_CHARS
    embedding_model: str | None = None
    refresh: Schedule | None = None
    webhook_secret_env: str | None = None


@dataclass(frozen=True, slots=True)
class DocsConfig:
    """A config that can be served: `problems` names each set that was left out, and why.

    `embedding_model` is the default's: built-in sets use it, too.
    """

    path: Path | None = None
    sets: tuple[SetOptions, ...] = ()
    default_docs: str | None = None
    problems: tuple[str, ...] = ()
    embedding_model: str | None = None


def find_config(named: Path | None, home: Path | None) -> Path | None:
    """Return the config to read: the named one, our own, or one of mcp-docs-ask; None without.

    Raises:
        ConfigError: The named file does not exist.
    """
    if named is not None:
        if not named.is_file():
            raise ConfigError(f"config {named}: no such file")
        return named
    if home is None:
        return None
    folder = home / ".config"
    candidates = (folder / name / "config.json" for name in ("liara-docs-mcp", "mcp-docs-ask"))
    return next((path for path in candidates if path.is_file()), None)


def load_config(path: Path, *, built_in_ids: Iterable[str] = ()) -> DocsConfig:
    """Read and check the config at `path`; a relative `source` counts from its folder.

    `built_in_ids` are sets that the program brings itself: they may be the default, and no
    configured set may take their ids.

    Raises:
        ConfigError: The file, its defaults, or the default set cannot be used.
    """
    if path.exists() and not path.is_file():
        # To open a pipe would wait for its writer.
        raise ConfigError(f"config {path}: not a file")
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_unique_keys)
    except OSError as error:
        raise ConfigError(f"config {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"config {path}: not valid JSON: {error}") from error
    try:
        return parse_config(data, folder=path.parent, path=path, built_in_ids=built_in_ids)
    except ConfigError as error:
        raise ConfigError(f"config {path}: {error}") from error
    except RecursionError:
        raise ConfigError(f"config {path}: nested too deep") from None


def parse_config(
    data: Any,
    *,
    folder: Path,
    path: Path | None = None,
    built_in_ids: Iterable[str] = (),
) -> DocsConfig:
    """Check a decoded config and resolve each set: its own value, the default's, the built-in.

    Raises:
        ConfigError: The defaults or the default set cannot be used; the message names the key.
    """
    bad_sets: dict[str, str] = {}
    data = _without_nulls(data)
    for error in _validator().iter_errors(data):
        keys = [str(key) for key in error.absolute_path]
        message = _explain(error)
        if len(keys) >= 2 and keys[0] == "docs":
            bad_sets.setdefault(keys[1], message)
        else:
            raise ConfigError(message)
    if len(data["docs"]) > MAX_SETS:
        raise ConfigError(f"docs: {len(data['docs'])} sets; at most {MAX_SETS} are served")
    defaults = _defaults_of(data)
    reserved = frozenset(built_in_ids)
    sets = []
    for set_id, entry in data["docs"].items():
        if set_id in bad_sets:
            continue
        try:
            _check_id(set_id, taken=reserved, others=data["docs"])
            sets.append(_set_options(set_id, entry, defaults, folder))
        except ConfigError as error:
            bad_sets[set_id] = str(error)
    default_docs = str(defaults["docs"])
    if default_docs in bad_sets:
        raise ConfigError(bad_sets[default_docs])
    known = sorted({*(options.spec.id for options in sets), *reserved})
    if default_docs not in known:
        raise ConfigError(f"default.docs: no set {default_docs!r}; known: {', '.join(known)}")
    problems = tuple(bad_sets.values())
    model = defaults["embedding_model"]
    return DocsConfig(path, tuple(sets), default_docs, problems, model)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    for key, count in counts.items():
        if count > 1:
            raise ValueError(f"the key {key!r} occurs twice in one object")
    return dict(pairs)


def _without_nulls(value: Any) -> Any:
    """Drop keys whose value is null: they mean the same as no key."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


@cache
def _validator() -> Draft202012Validator:
    schema = json.loads(data_path("config.schema.json").read_text(encoding="utf-8"))
    return Draft202012Validator(schema)


_TYPE_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
}


def _explain(error: ValidationError) -> str:
    """Say what is wrong at which key, without the value: it may be a source with a token."""
    key = ".".join(str(part) for part in error.absolute_path) or "config"
    bound: Any = error.validator_value
    instance: Any = error.instance
    if error.validator == "additionalProperties":
        return _explain_unknown_key(error)
    if error.validator == "required":
        missing = next(name for name in bound if name not in instance)
        return f"{missing if key == 'config' else f'{key}.{missing}'}: is missing"
    says: dict[str, Callable[[], str]] = {
        "type": lambda: f"must be {_TYPE_NAMES.get(str(bound), str(bound))}",
        "minimum": lambda: f"must be at least {bound}",
        "maximum": lambda: f"must be at most {bound}",
        "minLength": lambda: "must not be empty",
        "pattern": lambda: "must not be empty" if bound == "\\S" else f"must match {bound}",
        "minItems": lambda: "must not be empty",
        "minProperties": lambda: "must not be empty",
        "enum": lambda: f"must be one of {', '.join(map(str, bound))}",
    }
    say = says.get(str(error.validator))
    return f"{key}: {say() if say else 'has a form that cannot be used'}"


def _explain_unknown_key(error: ValidationError) -> str:
    schema: Any = error.schema
    instance: Any = error.instance
    known = list(schema["properties"])
    unknown = next(name for name in instance if name not in known)
    key = ".".join([*(str(part) for part in error.absolute_path), str(unknown)])
    near = get_close_matches(unknown, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(known))}"
    return f"{key}: unknown key{hint}"


def _defaults_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults: the `default` block, else the old top-level keys, else built in."""
    defaults: dict[str, Any] = {
        "top_k": DEFAULT_TOP_K,
        "chunk_max_chars": DEFAULT_CHUNK_MAX_CHARS,
        "max_context_chars": DEFAULT_MAX_CONTEXT_CHARS,
        "embedding_model": None,
    }
    old = {new: data[key] for key, new in _OLD_DEFAULT_KEYS.items() if key in data}
    defaults |= old | dict(data.get("default", {}))
    if "docs" not in defaults:
        raise ConfigError("default.docs: is missing; name the set that is asked by default")
    return defaults


def _check_id(set_id: str, *, taken: frozenset[str], others: Iterable[str]) -> None:
    if not _SET_ID.fullmatch(set_id):
        raise ConfigError(
            f"docs.{set_id}: an id has up to 64 letters, digits, '.', '_' or '-', "
            "and begins and ends with a letter or digit"
        )
    if _RESERVED_ON_DISK.fullmatch(set_id):
        raise ConfigError(f"docs.{set_id}: this id is no folder name on every system")
    if any(set_id.casefold() == name.casefold() for name in taken):
        raise ConfigError(f"docs.{set_id}: the id belongs to a built-in set")
    # Folder names on macOS and Windows do not tell upper from lower case.
    twin = next((o for o in others if o != set_id and o.casefold() == set_id.casefold()), None)
    if twin is not None:
        raise ConfigError(f"docs.{set_id}: collides on disk with docs.{twin}")


def _set_options(
    set_id: str, entry: Mapping[str, Any], defaults: Mapping[str, Any], folder: Path
) -> SetOptions:
    key = f"docs.{set_id}"
    resolved = {name: entry.get(name, defaults.get(name)) for name in defaults}
    spec = DocumentSetSpec(
        id=set_id,
        source=_source(entry["source"].strip(), folder),
        desc=entry.get("desc", "").strip(),
        ref=_ref(entry.get("ref", "main").strip(), f"{key}.ref"),
        include=_globs(entry.get("include", ["**/*.md"]), f"{key}.include"),
        exclude=_globs(entry.get("exclude", []), f"{key}.exclude"),
        layers=_layers(entry.get("layers", {}), f"{key}.layers"),
        chunk_max_chars=int(resolved["chunk_max_chars"]),
        base_url=_base_url(entry.get("base_url"), f"{key}.base_url"),
        title_from=entry.get("title_from", "auto"),
        questions=_questions(entry.get("questions"), folder),
    )
    return SetOptions(
        spec,
        top_k=int(resolved["top_k"]),
        max_context_chars=int(resolved["max_context_chars"]),
        embedding_model=resolved["embedding_model"],
        refresh=_schedule(entry.get("refresh"), f"{key}.refresh"),
        webhook_secret_env=entry.get("webhook_secret_env"),
    )


def _source(source: str, folder: Path) -> str:
    if is_git_source(source):
        return source
    return str(folder / Path(source).expanduser())


def _questions(file: str | None, folder: Path) -> str | None:
    return None if file is None else str(folder / Path(file.strip()).expanduser())


def _ref(ref: str, key: str) -> str:
    if ref.startswith("-"):
        raise ConfigError(f"{key}: a ref does not begin with '-'")
    return ref


def _globs(patterns: Iterable[str], key: str) -> tuple[str, ...]:
    checked = []
    for number, pattern in enumerate(patterns):
        glob = pattern.strip().replace("\\", "/")
        try:
            check_glob(glob)
        except ValueError as error:
            raise ConfigError(f"{key}.{number}: {error}") from error
        checked.append(glob)
    return tuple(checked)


def _layers(entries: Mapping[str, Mapping[str, Any]], key: str) -> tuple[Layer, ...]:
    layers: dict[str, Layer] = {}
    for written, entry in entries.items():
        name = written.strip().casefold()
        if not name:
            raise ConfigError(f"{key}: a layer has no name")
        if name == ALL_LAYERS:
            raise ConfigError(f"{key}.{written}: 'all' is reserved for the whole set")
        if name in layers:
            raise ConfigError(f"{key}.{written}: two layers are called {name!r}")
        include = _globs(entry["include"], f"{key}.{written}.include")
        layers[name] = Layer(name, entry.get("desc", "").strip(), include)
    return tuple(layers.values())


def _base_url(url: str | None, key: str) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ConfigError(f"{key}: must begin with https:// or http:// and name a host")
    return url


def _schedule(text: str | None, key: str) -> Schedule | None:
    if text is None:
        return None
    try:
        return Schedule.parse(text)
    except ValueError as error:
        raise ConfigError(f"{key}: {error}") from error
