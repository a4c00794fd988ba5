"""Settings: every environment variable once, with its default and what it does.

Nothing else in the program reads the environment. `cli.py` and `server/application.py` take a
`Settings` and hand plain values down.
"""

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.errors import SettingsError

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
_CACHE_NAME = "liara-docs-mcp"

Environ = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: its name, the default as text, and what it does.

    An empty value counts as unset. `default` is None for a variable that is off until it is set,
    and `shown_default` replaces it in the table where the default depends on the machine.
    """

    name: str
    field: str
    parse: Callable[[str, str], Any]
    default: str | None
    help: str
    shown_default: str = ""
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator chose. Secrets stay out of its repr."""

    host: str
    port: int
    public_url: str | None
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    mcp_token: str | None = field(repr=False)
    allow_anonymous: bool
    docs_config: Path | None
    reindex: bool
    liara: bool
    sync_on_start: bool
    liara_source: str | None
    liara_ref: str | None
    liara_refresh: str | None
    stale_after: timedelta | None
    data_dir: Path
    home: Path | None
    image_dir: Path | None
    log_level: str
    max_body_bytes: int
    max_concurrent_requests: int
    request_timeout_seconds: float
    tool_timeout_seconds: float
    shutdown_seconds: int
    avalai_api_key: str | None = field(repr=False)
    avalai_base_url: str
    embed_model: str
    embed_dim: int
    embed_timeout_seconds: float
    embed_max_calls: int
    embed_daily_limit: int | None
    no_proxy_hosts: tuple[str, ...]
    redis_url: str | None = field(repr=False)
    ca_bundle: Path | None

    @classmethod
    def from_env(
        cls, environ: Environ | None = None, overrides: Environ | None = None
    ) -> "Settings":
        """Read the settings from the environment of the process, or from a mapping.

        `overrides` stand in for variables of the same name, as the command line gives them.

        Raises:
            SettingsError: A value cannot be used; the message names variable and accepted values.
        """
        source = {**(os.environ if environ is None else environ), **(overrides or {})}
        values = {variable.field: _value(variable, source) for variable in VARIABLES}
        values["home"] = _home(source)
        values["data_dir"] = values["data_dir"] or _default_data_dir(source)
        for name in ("data_dir", "image_dir", "docs_config", "ca_bundle"):
            values[name] = _expand_home(values[name], source)
        return cls(**values)


def _value(variable: Variable, environ: Environ) -> Any:
    raw = environ.get(variable.name, "").strip()
    if not raw:
        raw = variable.default or ""
    # A list that is off is an empty one, everything else is None.
    if not raw:
        return () if variable.parse is _entries else None
    return variable.parse(variable.name, raw)


def _refuse(name: str, raw: str, accepted: str) -> SettingsError:
    return SettingsError(f"{name}={raw!r} cannot be used: {accepted}.")


def _text(_name: str, raw: str) -> str:
    return raw


def _path(name: str, raw: str) -> Path:
    if "\0" in raw:
        raise _refuse(name, raw, "a path without NUL characters is expected")
    return Path(raw)


def _flag(name: str, raw: str) -> bool:
    value = raw.lower()
    if value not in _TRUE | _FALSE:
        raise _refuse(name, raw, "accepted are 1, true, yes, on and 0, false, no, off")
    return value in _TRUE


def _entries(name: str, raw: str) -> tuple[str, ...]:
    entries = tuple(entry.strip() for entry in raw.split(",") if entry.strip())
    if not entries:
        raise _refuse(name, raw, "a comma-separated list with at least one entry is expected")
    return entries


def _integer(low: int, high: int) -> Callable[[str, str], int]:
    def parse(name: str, raw: str) -> int:
        # isascii: int() would also take Persian digits and underscores in between.
        if not (raw.isascii() and raw.isdigit() and low <= int(raw[:12]) <= high):
            raise _refuse(name, raw, f"a whole number from {low} to {high} is expected")
        return int(raw)

    return parse


def _seconds(low: float, high: float) -> Callable[[str, str], float]:
    def parse(name: str, raw: str) -> float:
        if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", raw, re.ASCII) or not low <= float(raw) <= high:
            raise _refuse(name, raw, f"seconds from {low:g} to {high:g} are expected")
        return float(raw)

    return parse


def _age(name: str, raw: str) -> timedelta | None:
    if raw.lower() == "off":
        return None
    found = re.fullmatch(r"([1-9]\d{0,3})([hd])", raw, re.ASCII)
    if found is None:
        raise _refuse(name, raw, "an age such as 12h or 30d is expected, or off")
    number = int(found[1])
    return timedelta(hours=number) if found[2] == "h" else timedelta(days=number)


def _log_level(name: str, raw: str) -> str:
    level = raw.upper()
    if level not in LOG_LEVELS:
        raise _refuse(name, raw, f"accepted are {', '.join(LOG_LEVELS)}")
    return level


def _url(name: str, raw: str) -> str:
    accepted = "an http or https URL without user name, query and fragment is expected"
    try:
        parts = urlsplit(raw)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        raise _refuse(name, raw, accepted) from None
    plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    usable = parts.scheme in ("http", "https") and parts.hostname and plain and port_is_valid
    if not usable or not _VISIBLE_ASCII.fullmatch(raw):
        raise _refuse(name, raw, accepted)
    return raw.rstrip("/")


def _secret(name: str, raw: str) -> str:
    # The value is a secret: it is not in the message.
    if not _VISIBLE_ASCII.fullmatch(raw):
        raise SettingsError(f"{name} cannot be used: visible ASCII without spaces is expected.")
    return raw


def _home(environ: Environ) -> Path | None:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(home) if home else None


def _expand_home(path: Path | None, environ: Environ) -> Path | None:
    home = _home(environ)
    if path is None or home is None or path.parts[:1] != ("~",):
        return path
    return home.joinpath(*path.parts[1:])


def _default_data_dir(environ: Environ) -> Path:
    home = _home(environ)
    if home is not None:
        return home / ".cache" / _CACHE_NAME
    # The user id keeps two users of one machine out of each other's folder.
    user = getattr(os, "getuid", lambda: "user")()
    return Path(tempfile.gettempdir()) / f"{_CACHE_NAME}-{user}"


VARIABLES: tuple[Variable, ...] = (
    Variable("HOST", "host", _text, "127.0.0.1", "Address that `serve` binds."),
    Variable("PORT", "port", _integer(0, 65535), "8000", "Port that `serve` binds; 0: any free."),
    Variable(
        "PUBLIC_URL",
        "public_url",
        _url,
        None,
        "Address under which people reach the server, used wherever a URL is shown.",
    ),
    Variable(
        "MCP_ALLOWED_HOSTS",
        "allowed_hosts",
        _entries,
        None,
        "Host headers that are served: `name`, `name:port` or `name:*` (any port), separated by"
        " commas. Unset: localhost only on a loopback address, no check on a public one.",
    ),
    Variable(
        "MCP_ALLOWED_ORIGINS",
        "allowed_origins",
        _entries,
        None,
        "Origin headers that are served, such as `https://app.example.com` or"
        " `http://localhost:*`; needs `MCP_ALLOWED_HOSTS`. Requests without Origin pass.",
    ),
    Variable(
        "MCP_TOKEN",
        "mcp_token",
        _secret,
        None,
        "Bearer token that `/mcp` asks for.",
        secret=True,
    ),
    Variable(
        "DOCS_CONFIG",
        "docs_config",
        _path,
        None,
        "JSON file that names further document sets.",
    ),
    Variable(
        "ALLOW_ANONYMOUS",
        "allow_anonymous",
        _flag,
        "0",
        "`1` serves the sets of the config on a public address without `MCP_TOKEN`.",
    ),
    Variable(
        "REINDEX",
        "reindex",
        _flag,
        "off",
        "`on` offers the tool `reindex` over HTTP, too; on a public address only with `MCP_TOKEN`.",
    ),
    Variable("LIARA", "liara", _flag, "on", "`off` leaves out the Liara set and its tools."),
    Variable(
        "SYNC_ON_START",
        "sync_on_start",
        _flag,
        "1",
        "Fetch the sources in the background after the start; `0` turns it off.",
    ),
    Variable(
        "LIARA_SOURCE",
        "liara_source",
        _text,
        None,
        "Folder or git URL that the Liara docs come from, such as a mirror.",
        shown_default="the public repository of the docs",
    ),
    Variable(
        "LIARA_REF",
        "liara_ref",
        _text,
        None,
        "Branch, tag or commit of that source.",
        shown_default="master",
    ),
    Variable(
        "LIARA_REFRESH",
        "liara_refresh",
        _text,
        None,
        "How often the Liara docs are fetched: `6h`, `1d`, a cron expression in UTC, or `off`.",
        shown_default="6h; off with SYNC_ON_START=0",
    ),
    Variable(
        "STALE_AFTER",
        "stale_after",
        _age,
        "30d",
        "Age such as `12h` or `30d`: an index that was not compared with its git source for longer"
        " is called stale; `off` never does.",
    ),
    Variable(
        "DATA_DIR",
        "data_dir",
        _path,
        None,
        "Folder for checkouts and snapshots.",
        shown_default="~/.cache/liara-docs-mcp",
    ),
    Variable(
        "IMAGE_DIR",
        "image_dir",
        _path,
        None,
        "Read-only folder with snapshots that an image brings along.",
    ),
    Variable("LOG_LEVEL", "log_level", _log_level, "INFO", f"One of {', '.join(LOG_LEVELS)}."),
    Variable(
        "MAX_BODY_BYTES",
        "max_body_bytes",
        _integer(1024, 64 * 1024 * 1024),
        "1048576",
        "Largest request body; a larger one gets 413.",
    ),
    Variable(
        "MAX_CONCURRENT_REQUESTS",
        "max_concurrent_requests",
        _integer(1, 10_000),
        "128",
        "Requests to `/mcp` that are worked on at once; the next one gets 503.",
    ),
    Variable(
        "REQUEST_TIMEOUT_SECONDS",
        "request_timeout_seconds",
        _seconds(0.1, 600),
        "10",
        "Time that a client has to send its headers, and again for its body.",
    ),
    Variable(
        "TOOL_TIMEOUT_SECONDS",
        "tool_timeout_seconds",
        _seconds(0.1, 600),
        "30",
        "Time that a tool call may take before it is answered with an error.",
    ),
    Variable(
        "SHUTDOWN_SECONDS",
        "shutdown_seconds",
        _integer(1, 600),
        "10",
        "Time that requests in flight have to finish after SIGTERM.",
    ),
    Variable(
        "AVALAI_API_KEY",
        "avalai_api_key",
        _secret,
        None,
        "Key of the embeddings endpoint; without one, search is lexical.",
        secret=True,
    ),
    Variable(
        "AVALAI_BASE_URL",
        "avalai_base_url",
        _url,
        "https://api.avalai.ir/v1",
        "Base URL of an OpenAI-compatible embeddings endpoint.",
    ),
    Variable(
        "EMBED_MODEL",
        "embed_model",
        _text,
        "text-embedding-3-small",
        "Embedding model to ask for; `local:NAME` names one that runs in this process.",
    ),
    Variable("EMBED_DIM", "embed_dim", _integer(1, 16_384), "1536", "Dimension of its vectors."),
    Variable(
        "EMBED_TIMEOUT_SECONDS",
        "embed_timeout_seconds",
        _seconds(0.05, 30),
        "1.5",
        "Time that a query waits for its vector before it is answered without.",
    ),
    Variable(
        "EMBED_MAX_CALLS",
        "embed_max_calls",
        _integer(1, 256),
        "8",
        "Calls to the embeddings endpoint at once.",
    ),
    Variable(
        "EMBED_DAILY_LIMIT",
        "embed_daily_limit",
        _integer(1, 1_000_000_000),
        None,
        "Calls to the embeddings endpoint a day (UTC); then dense search rests until midnight.",
    ),
    Variable(
        "NO_PROXY_HOSTS",
        "no_proxy_hosts",
        _entries,
        "api.avalai.ir",
        "Hosts that are reached without the proxy of the environment.",
    ),
    Variable(
        "REDIS_URL",
        "redis_url",
        _secret,
        None,
        "Redis that replicas share query vectors and the count of calls through; needs the extra"
        " `redis`.",
        secret=True,
    ),
    Variable(
        "CA_BUNDLE",
        "ca_bundle",
        _path,
        None,
        "PEM file with the certificate authorities to trust, for git and the embeddings endpoint.",
    ),
)
"""Every variable, in the order of the table in README.md."""


def secret_of(name: str) -> str | None:
    """Return the value of a variable that the JSON config names, such as a webhook's secret."""
    return os.environ.get(name) or None


def describe(settings: Settings) -> list[tuple[str, str]]:
    """Return each variable's name and value in effect, with secrets masked."""
    values = {item.name: getattr(settings, item.name) for item in fields(settings)}
    return [(variable.name, _shown(variable, values[variable.field])) for variable in VARIABLES]


def _shown(variable: Variable, value: Any) -> str:
    if value is None or value == ():
        return "unset"
    if variable.secret:
        return "set"
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
