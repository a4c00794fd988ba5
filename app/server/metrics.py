"""Prometheus metrics, in a registry of their own for each app, and GET /metrics."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import __version__
from app.library.library import DocumentLibrary
from app.library.status import LibraryEvent, SetState

PREFIX = "liara_docs_mcp_"

# A search takes a few milliseconds, a reindex up to 20 s.
_LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

# Paths come from clients: only those that exist become label values.
_KNOWN_PATHS = frozenset({"/", "/mcp", "/mcp/", "/healthz", "/readyz", "/metrics"})


class Metrics:
    """What the server counts. Label values never come from clients unchecked."""

    def __init__(self) -> None:
        """Register every metric in a new registry."""
        self.registry = CollectorRegistry()
        self.tool_calls = Counter(
            f"{PREFIX}tool_calls",
            "Tool calls by tool and outcome (ok, refused, error, timeout, cancelled).",
            ("tool", "outcome"),
            registry=self.registry,
        )
        self.tool_seconds = Histogram(
            f"{PREFIX}tool_seconds",
            "Time from the call of a tool to its answer.",
            ("tool",),
            registry=self.registry,
            buckets=_LATENCY_BUCKETS,
        )
        self.http_responses = Counter(
            f"{PREFIX}http_responses",
            "HTTP responses by path and status.",
            ("path", "status"),
            registry=self.registry,
        )
        self.http_in_flight = Gauge(
            f"{PREFIX}http_requests_in_flight",
            "HTTP requests that are being answered.",
            registry=self.registry,
        )
        self.refused = Counter(
            f"{PREFIX}refused_requests",
            "Requests refused before they reached a tool, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.library_events = Counter(
            f"{PREFIX}library_events",
            "Refreshes and configuration changes, by kind and document set.",
            ("kind", "docs"),
            registry=self.registry,
        )
        build = Gauge(f"{PREFIX}build_info", "Always 1.", ("version",), registry=self.registry)
        build.labels(__version__).set(1)

    def observe_tool(self, tool: str, outcome: str, seconds: float) -> None:
        """Count one tool call."""
        self.tool_calls.labels(tool, outcome).inc()
        self.tool_seconds.labels(tool).observe(seconds)

    def count_refusal(self, reason: str) -> None:
        """Count one request that was refused, for one of our own reasons."""
        self.refused.labels(reason).inc()

    def on_library_event(self, event: LibraryEvent) -> None:
        """Count what the library reports."""
        self.library_events.labels(event.kind, event.set_id).inc()

    def watch(self, library: DocumentLibrary) -> None:
        """Show the state of the library's document sets at each scrape."""
        self.registry.register(LibraryCollector(library))


class LibraryCollector(Collector):
    """Reads the document sets when Prometheus asks, so that no copy can be out of date."""

    def __init__(self, library: DocumentLibrary) -> None:
        """Collect from `library`."""
        self._library = library

    def collect(self) -> Iterator[Metric]:
        """Yield chunks, snapshot age, state and skipped files of each set."""
        chunks = GaugeMetricFamily(f"{PREFIX}chunks", "Chunks searched.", labels=["docs"])
        age = GaugeMetricFamily(
            f"{PREFIX}snapshot_age_seconds", "Time since the index was built.", labels=["docs"]
        )
        skipped = GaugeMetricFamily(
            f"{PREFIX}skipped_files", "Source files left out of the index.", labels=["docs"]
        )
        state = GaugeMetricFamily(
            f"{PREFIX}set_state", "1 for the state that the set is in.", labels=["docs", "state"]
        )
        for status in self._library.statuses():
            index = status.index
            chunks.add_metric([status.id], index.chunks if index else 0)
            skipped.add_metric([status.id], len(index.skipped) if index else 0)
            if status.age_seconds is not None:
                age.add_metric([status.id], status.age_seconds)
            for name in SetState:
                state.add_metric([status.id, name], 1.0 if name == status.state else 0.0)
        yield from (chunks, age, skipped, state)


class ResponseMeter:
    """Outermost middleware: counts every HTTP response, the refused ones as well."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        """Count the responses of `app`."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and note the status of its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in _KNOWN_PATHS else "other"

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.http_responses.labels(path, str(message["status"])).inc()
            await send(message)

        with self._metrics.http_in_flight.track_inprogress():
            await self._app(scope, receive, count)


class MetricsEndpoint:
    """Answers a scrape."""

    def __init__(self, metrics: Metrics) -> None:
        """Answer from the registry of `metrics`."""
        self._metrics = metrics

    async def scrape(self, _request: Request) -> Response:
        """Return every metric in the text format of Prometheus."""
        return Response(
            generate_latest(self._metrics.registry),
            headers={"Content-Type": CONTENT_TYPE_LATEST, "Cache-Control": "no-store"},
        )
