"""Who may talk to the server: the Host and Origin allowlist and the bearer token.

Both are pure ASGI middleware in front of the routes; application.py shows their order.
"""

import hmac
import logging
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import AddressValueError, IPv6Address, ip_address
from time import monotonic
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import SettingsError
from app.server.logging_setup import fields

logger = logging.getLogger(__name__)

HOSTS_VARIABLE = "MCP_ALLOWED_HOSTS"
ORIGINS_VARIABLE = "MCP_ALLOWED_ORIGINS"

# Probes name the server by address and port, so these answer to any Host; they show no document.
OPEN_PATHS = frozenset({"/healthz", "/readyz"})

# A proxy or client may spell out the port that its scheme implies.
_DEFAULT_PORTS = {"http": "80", "https": "443"}

_HOST_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?", re.ASCII)
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_ANY_PORT = "*"


class AllowlistState(StrEnum):
    """Which requests the Host check lets through."""

    ON = "on"
    OFF = "off"
    LOCAL_ONLY = "local only"


@dataclass(frozen=True, slots=True)
class Authority:
    """A host and its port as text; the port is None where none is written."""

    host: str
    port: str | None

    @classmethod
    def parse(cls, text: str, *, any_port: bool = False) -> "Authority | None":
        """Read `name`, `name:port` or an IPv6 address in brackets; None for anything else.

        Letter case is folded and IPv6 addresses are compressed, so that equal hosts compare equal.
        `any_port` also reads `name:*`.
        """
        folded = text.lower()
        host, separator, port = folded.rpartition(":")
        if not separator or port.endswith("]"):
            host, port = folded, ""
        elif not _is_port(port, any_port):
            return None
        name = _host_name(host)
        return cls(name, port or None) if name else None


def _is_port(port: str, any_port: bool) -> bool:
    if port == _ANY_PORT:
        return any_port
    return _PORT.fullmatch(port) is not None and int(port) <= 65535


def _host_name(host: str) -> str | None:
    if host.startswith("[") and host.endswith("]"):
        try:
            return f"[{IPv6Address(host[1:-1]).compressed}]"
        except AddressValueError:
            return None
    return host if _HOST_NAME.fullmatch(host) else None


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of the allowlist; `scheme` is None for hosts and for origins that name none."""

    scheme: str | None
    authority: Authority

    def allows(self, authority: Authority, scheme: str | None = None) -> bool:
        """Whether a Host, or an Origin with its scheme, matches the entry."""
        if self.scheme not in (None, scheme) or self.authority.host != authority.host:
            return False
        if self.authority.port == _ANY_PORT:
            return authority.port is not None
        if self.authority.port is not None:
            return self.authority.port == authority.port
        defaults = [_DEFAULT_PORTS[scheme]] if scheme else _DEFAULT_PORTS.values()
        return authority.port is None or authority.port in defaults


@dataclass(frozen=True, slots=True)
class Allowlist:
    """The Host and Origin headers that are served."""

    state: AllowlistState
    hosts: tuple[Rule, ...]
    origins: tuple[Rule, ...]

    @classmethod
    def build(cls, hosts: Collection[str], origins: Collection[str], bind: str) -> "Allowlist":
        """Make the allowlist of the two variables; `bind` decides when neither is set.

        Raises:
            SettingsError: An entry cannot be used, or origins are given without hosts.
        """
        if hosts:
            return cls(
                AllowlistState.ON,
                tuple(_host_rule(entry) for entry in hosts),
                tuple(_origin_rule(entry) for entry in origins),
            )
        if origins:
            raise SettingsError(
                f"{ORIGINS_VARIABLE} is set without {HOSTS_VARIABLE}: name the hosts, too."
            )
        if not is_loopback(bind):
            return cls(AllowlistState.OFF, (), ())
        return cls._local_only(bind)

    @classmethod
    def _local_only(cls, bind: str) -> "Allowlist":
        names = dict.fromkeys(("localhost", "127.0.0.1", "[::1]", _bracketed(bind).lower()))
        rules = tuple(
            Rule(None, Authority(name, port)) for name in names for port in (None, _ANY_PORT)
        )
        return cls(AllowlistState.LOCAL_ONLY, rules, rules)

    def warnings(self, public_url: str | None = None) -> list[str]:
        """Say what an operator probably did not mean; empty when all seems well."""
        if self.state is AllowlistState.OFF:
            return [f"the Host check is off: the address is public and {HOSTS_VARIABLE} is not set"]
        bare = {rule.authority.host for rule in self.hosts if rule.authority.port is None}
        found = [
            f"{HOSTS_VARIABLE} has {rule.authority.host}:* but not {rule.authority.host}: a proxy"
            " that forwards the name without a port is refused; add the bare name, too"
            for rule in self.hosts
            if rule.authority.port == _ANY_PORT and rule.authority.host not in bare
        ]
        public_host = urlsplit(public_url).netloc if public_url else ""
        if public_host and not self.allows_host(public_host):
            found.append(f"PUBLIC_URL names {public_host}, which {HOSTS_VARIABLE} does not serve")
        return found

    def allows_host(self, value: str) -> bool:
        """Whether a Host header is served."""
        authority = Authority.parse(value)
        return authority is not None and any(rule.allows(authority) for rule in self.hosts)

    def allows_origin(self, value: str, host: str) -> bool:
        """Whether an Origin header is served: listed, or the page comes from this very host."""
        scheme, separator, rest = value.lower().partition("://")
        authority = Authority.parse(rest) if separator and scheme in _DEFAULT_PORTS else None
        if authority is None:
            return False
        # The Host has passed its own check by now. Schemes are not compared, as TLS may end at
        # a proxy; ports are.
        own = Authority.parse(host)
        if own is not None and Rule(None, own).allows(authority, scheme):
            return True
        return any(rule.allows(authority, scheme) for rule in self.origins)


def is_loopback(host: str) -> bool:
    """Whether an address to bind is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host


def _host_rule(entry: str) -> Rule:
    if entry in ("*", "*:*"):
        raise SettingsError(
            f"{HOSTS_VARIABLE}={entry} would serve every Host: name the hosts instead."
        )
    authority = Authority.parse(_bracketed(entry), any_port=True)
    if authority is None:
        raise SettingsError(
            f"{HOSTS_VARIABLE} has the entry {entry!r}: accepted are name, name:port and name:*,"
            " without scheme and path."
        )
    return Rule(None, authority)


def _origin_rule(entry: str) -> Rule:
    scheme, separator, rest = entry.rpartition("://")
    scheme = scheme.lower()
    authority = Authority.parse(_bracketed(rest), any_port=True)
    if authority is None or (separator and scheme not in _DEFAULT_PORTS):
        raise SettingsError(
            f"{ORIGINS_VARIABLE} has the entry {entry!r}: accepted are https://name,"
            " https://name:port and https://name:* (or http), without a path; * alone is not."
        )
    return Rule(scheme or None, authority)


class OnceLog:
    """Remembers which values were logged, in bounded memory.

    At most `limit` values a window: a flood of made-up hosts neither fills the log nor hides,
    for longer than the window, the one that an operator looks for.
    """

    def __init__(
        self,
        limit: int = 200,
        window_seconds: float = 3600,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Start with nothing seen."""
        self._limit = limit
        self._window_seconds = window_seconds
        self._clock = clock
        self._window_ends = clock() + window_seconds
        self._seen: set[tuple[str, str]] = set()

    def is_new(self, variable: str, value: str) -> bool:
        """Whether the value should be logged now; remembers that it was."""
        now = self._clock()
        if now >= self._window_ends:
            self._seen.clear()
            self._window_ends = now + self._window_seconds
        key = (variable, value)
        if key in self._seen or len(self._seen) >= self._limit:
            return False
        self._seen.add(key)
        return True


class HostGuard:
    """Refuse foreign Host (421) and Origin (403) headers on every path but the probes."""

    def __init__(
        self, app: ASGIApp, allowlist: Allowlist, on_refusal: Callable[[str], None]
    ) -> None:
        """Guard `app`; `on_refusal` is told `host` or `origin` for each refusal."""
        self._app = app
        self._allowlist = allowlist
        self._on_refusal = on_refusal
        self._once = OnceLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope["path"], Headers(scope=scope))
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> JSONResponse | None:
        hosts = headers.getlist("host")
        # Two Host headers: this program and a proxy in front could each believe another one.
        if len(hosts) > 1:
            self._on_refusal("host")
            return JSONResponse({"error": "more than one Host header"}, 400)
        if path in OPEN_PATHS or self._allowlist.state is AllowlistState.OFF:
            return None
        # httptools leaves the white space around a value, which is no part of it.
        host = hosts[0].strip(" \t") if hosts else ""
        if not self._allowlist.allows_host(host):
            self._log("host", HOSTS_VARIABLE, host)
            return JSONResponse({"error": "this server does not serve this Host"}, 421)
        for origin in headers.getlist("origin"):
            if not self._allowlist.allows_origin(origin.strip(" \t"), host):
                self._log("origin", ORIGINS_VARIABLE, origin)
                return JSONResponse({"error": "this server does not serve this Origin"}, 403)
        return None

    def _log(self, header: str, variable: str, value: str) -> None:
        self._on_refusal(header)
        value = value[:200]
        if self._once.is_new(variable, value):
            logger.warning("%s refused %s", header, fields(value=value, variable=variable))


class TokenGuard:
    """Ask for the static bearer token; 401 without it, in the terms of RFC 6750."""

    def __init__(self, app: ASGIApp, token: str, on_refusal: Callable[[str], None]) -> None:
        """Guard `app`; `on_refusal` is told `token` for each refusal."""
        self._app = app
        self._token = token.encode()
        self._on_refusal = on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it here."""
        values = Headers(scope=scope).getlist("authorization")
        if self._accepts(values):
            await self._app(scope, receive, send)
            return
        self._on_refusal("token")
        challenge = 'Bearer realm="liara-docs-mcp"'
        error = "a bearer token is needed: Authorization: Bearer <token>"
        if values:
            challenge += ', error="invalid_token"'
            error = "the Authorization header holds no valid bearer token"
        refusal = JSONResponse({"error": error}, 401, {"WWW-Authenticate": challenge})
        await refusal(scope, receive, send)

    def _accepts(self, values: Iterable[str]) -> bool:
        headers = list(values)
        if len(headers) != 1:
            return False
        scheme, _, token = headers[0].strip(" \t").partition(" ")
        # Latin-1 is how the header was decoded; compare_digest takes the same time for any token.
        given = token.strip().encode("latin-1")
        return scheme.lower() == "bearer" and hmac.compare_digest(given, self._token)
