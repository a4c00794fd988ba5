"""The HTTP application: routes, the order of the middleware, and what runs while it serves.

The composition root of `serve` and `stdio`: it reads the settings and hands plain values down.
"""

import io
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, redirect_stdout
from dataclasses import replace
from typing import Any, TextIO
from urllib.parse import urlsplit

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app import __version__
from app.data_files import data_path
from app.embeddings.openai import EndpointOptions
from app.embeddings.registry import EmbeddingOptions, Encoders
from app.errors import SettingsError
from app.liara.corpus import LIARA_SPEC
from app.library.config import DocsConfig, SetOptions, find_config, load_config
from app.library.library import ASK_WAIT_SECONDS, DocumentLibrary
from app.library.schedule import Schedule
from app.models import DocumentSetSpec
from app.server.health import HealthEndpoints
from app.server.hooks import hook_route
from app.server.landing import LandingPages
from app.server.logging_setup import fields
from app.server.mcp_server import build_server
from app.server.metrics import Metrics, MetricsEndpoint, ResponseMeter
from app.server.requests import HeaderLimit, MethodGuard, PostGate
from app.server.running import RunningLibrary
from app.server.security import Allowlist, HostGuard, TokenGuard, is_loopback
from app.settings import Settings, secret_of

logger = logging.getLogger(__name__)

_LIARA_REFRESH = "6h"
_NO_REFRESH = "off"


def create_app(settings: Settings) -> Starlette:
    """Return the application.

    Raises:
        SettingsError: The allowlist cannot be used, or there is nothing to serve.
        ConfigError: The JSON config cannot be used.
    """
    allowlist = Allowlist.build(settings.allowed_hosts, settings.allowed_origins, settings.host)
    for warning in allowlist.warnings(settings.public_url):
        logger.warning("%s", warning)
    metrics = Metrics()
    library = open_library(settings, metrics, liara_only=leaves_out_config(settings))
    if leaves_out_reindex(settings):
        logger.error("reindex is not offered: the address is public and MCP_TOKEN is not set")
    metrics.watch(library)
    running = RunningLibrary(library)
    server = build_server(
        library,
        metrics,
        transport="http",
        reindex_enabled=settings.reindex and not leaves_out_reindex(settings),
        tool_timeout_seconds=settings.tool_timeout_seconds,
        until_ready=running.loaded.wait,
    )
    logger.info(
        "starting %s",
        fields(version=__version__, hosts=allowlist.state, docs=",".join(library.ids)),
    )
    has_token = settings.mcp_token is not None
    health = HealthEndpoints(library, allowlist, token=has_token)
    pages = LandingPages(library, settings.public_url, token=has_token)
    endpoint = McpEndpoint(server, settings, pages, metrics)
    app = Starlette(
        routes=[
            Route("/", pages.root),
            Route("/mcp", endpoint),
            Route("/mcp/", endpoint),
            Route("/healthz", health.healthz),
            Route("/readyz", health.readyz),
            hook_route(library, secret_of),
            Route("/metrics", MetricsEndpoint(metrics).scrape),
        ],
        # Outermost first: every response is counted, then nothing passes with foreign headers.
        middleware=[
            Middleware(ResponseMeter, metrics=metrics),
            Middleware(HeaderLimit, on_refusal=metrics.count_refusal),
            Middleware(HostGuard, allowlist=allowlist, on_refusal=metrics.count_refusal),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _internal_error},
        lifespan=_lifespan(server, running),
    )
    # Never a redirect: its Location would be made of an unchecked Host, with the wrong scheme.
    app.router.redirect_slashes = False
    return app


async def serve_stdio(settings: Settings) -> None:
    """Serve the same tools on standard input and output until the client closes them.

    Raises:
        ConfigError: The JSON config cannot be used.
    """
    metrics = Metrics()
    library = open_library(settings, metrics)
    running = RunningLibrary(library)
    server = build_server(
        library,
        metrics,
        transport="stdio",
        reindex_enabled=True,
        tool_timeout_seconds=settings.tool_timeout_seconds,
        until_ready=running.loaded.wait,
    )
    with redirect_stdout(_unbuffered_stdout()):
        async with running.serve():
            await server.run_stdio_async()


def _unbuffered_stdout() -> TextIO:
    """Return standard output without any buffer, as `python -u` has it.

    The SDK claims descriptor 1 before the library's task gets to run, and points it at standard
    error: a stray print goes there at once, instead of to the client when a buffer is flushed.
    """
    if not isinstance(sys.stdout, io.TextIOWrapper):
        return sys.stdout
    raw = io.FileIO(sys.stdout.fileno(), "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="replace", write_through=True)


def open_library(
    settings: Settings,
    metrics: Metrics,
    *,
    change: Callable[[DocumentSetSpec], DocumentSetSpec] = lambda spec: spec,
    liara_only: bool = False,
) -> DocumentLibrary:
    """Return the library of the Liara set and of the sets that the JSON config names.

    `change` may give a set another source, as `sync --source` does.

    Raises:
        ConfigError: The config cannot be used; a set that cannot be is left out and logged.
        SettingsError: There is nothing to serve.
    """
    built_in = [_liara(settings, change)] if settings.liara else []
    config = DocsConfig()
    path = find_config(settings.docs_config, settings.home)
    if path is not None and liara_only:
        logger.error(
            "the document sets of %s are not served: the address is public and neither MCP_TOKEN"
            " nor ALLOW_ANONYMOUS=1 is set",
            path,
        )
    elif path is not None:
        config = load_config(path, built_in_ids=[options.spec.id for options in built_in])
    for problem in config.problems:
        logger.error("document set left out: %s", problem)
    if not built_in and not config.sets:
        raise SettingsError("nothing to serve: LIARA is off and no config names a document set")
    sets = tuple(replace(options, spec=change(options.spec)) for options in config.sets)
    return DocumentLibrary(
        built_in,
        data_dir=settings.data_dir,
        image_dir=settings.image_dir,
        starter_dir=data_path("starter"),
        config=replace(config, sets=sets),
        encoders=_encoders(settings),
        ca_bundle=settings.ca_bundle,
        sync_on_start=settings.sync_on_start,
        stale_after=settings.stale_after,
        # The call needs some of its time for the answer itself.
        ask_wait_seconds=min(ASK_WAIT_SECONDS, settings.tool_timeout_seconds / 2),
        on_event=metrics.on_library_event,
    )


def _liara(settings: Settings, change: Callable[[DocumentSetSpec], DocumentSetSpec]) -> SetOptions:
    """Return the Liara set with its schedule; without the fetch at the start it has none."""
    spec = replace(
        LIARA_SPEC,
        source=settings.liara_source or LIARA_SPEC.source,
        ref=settings.liara_ref or LIARA_SPEC.ref,
    )
    text = settings.liara_refresh or (_LIARA_REFRESH if settings.sync_on_start else _NO_REFRESH)
    try:
        schedule = None if text.lower() == _NO_REFRESH else Schedule.parse(text)
    except ValueError as error:
        raise SettingsError(
            f"LIARA_REFRESH={text!r} cannot be used: it {error}, or off."
        ) from error
    return SetOptions(change(spec), refresh=schedule)


def _encoders(settings: Settings) -> Encoders:
    endpoint = EndpointOptions(
        settings.avalai_base_url,
        settings.avalai_api_key,
        timeout_seconds=settings.embed_timeout_seconds,
        max_calls=settings.embed_max_calls,
        ca_bundle=settings.ca_bundle,
        no_proxy_hosts=settings.no_proxy_hosts,
    )
    options = EmbeddingOptions(
        endpoint,
        settings.embed_model,
        settings.embed_dim,
        daily_limit=settings.embed_daily_limit,
        redis_url=settings.redis_url,
        data_dir=settings.data_dir,
    )
    return Encoders(options)


def leaves_out_config(settings: Settings) -> bool:
    """Whether `serve` leaves out the sets of the config: they may be a team's own."""
    return _is_open_to_strangers(settings) and not settings.allow_anonymous


def leaves_out_reindex(settings: Settings) -> bool:
    """Whether `serve` leaves out the tool that REINDEX asks for: strangers could call it."""
    return settings.reindex and _is_open_to_strangers(settings)


def _is_open_to_strangers(settings: Settings) -> bool:
    return settings.mcp_token is None and _is_public(settings)


def _is_public(settings: Settings) -> bool:
    """Whether others can reach the server: directly, or by a name that a proxy serves it under."""
    names = [urlsplit(f"//{entry}").hostname or "" for entry in settings.allowed_hosts]
    if settings.public_url is not None:
        names.append(urlsplit(settings.public_url).hostname or "")
    return not all(is_loopback(name) for name in (settings.host, *names))


class McpEndpoint:
    """The MCP server as an ASGI endpoint behind its gate, at both of its paths."""

    def __init__(
        self, server: MCPServer[Any], settings: Settings, pages: LandingPages, metrics: Metrics
    ) -> None:
        """Prepare the SDK's session manager and stack the guards before it."""
        server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=settings.max_body_bytes,
            # HostGuard checks every path, with ports and letter case as HTTP means them.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        app: ASGIApp = PostGate(
            server.session_manager.handle_request,
            on_refusal=metrics.count_refusal,
            max_body_bytes=settings.max_body_bytes,
            max_concurrent=settings.max_concurrent_requests,
            body_timeout_seconds=settings.request_timeout_seconds,
        )
        if settings.mcp_token is not None:
            app = TokenGuard(app, settings.mcp_token, metrics.count_refusal)
        self._app = MethodGuard(app, pages.endpoint)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)


def _lifespan(
    server: MCPServer[Any], running: RunningLibrary
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with server.session_manager.run(), running.serve():
            yield

    return lifespan


async def _http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    text = {404: "not found", 405: "method not allowed"}.get(status, "request refused")
    return JSONResponse({"error": text}, status, headers)


async def _internal_error(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "internal error"}, 500)
