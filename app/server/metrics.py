"""Prometheus metrics, in a registry of their own for each app, and GET /metrics."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import __version__
from app.embeddings.breaker import BreakerState
from app.library.library import DocumentLibrary
from app.library.status import LibraryEvent, SetState
from app.library.vectors import LibraryVectors, VectorState

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
        if library.vectors is not None:
            self.registry.register(DenseCollector(library, library.vectors))


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


class DenseCollector(Collector):
    """Reads what dense search counts of itself."""

    def __init__(self, library: DocumentLibrary, vectors: LibraryVectors) -> None:
        """Collect from the vectors of `library`."""
        self._library = library
        self._vectors = vectors

    def collect(self) -> Iterator[Metric]:
        """Yield queries, dropouts by reason, and the state of endpoint, caches and budget."""
        yield from self._sets()
        yield from self._endpoint()
        yield from self._caches()

    def _sets(self) -> Iterator[Metric]:
        ready = GaugeMetricFamily(
            f"{PREFIX}dense_ready", "1 while vectors take part in the search.", labels=["docs"]
        )
        for set_id in self._library.ids:
            leg = self._library.vector_status(set_id)
            if leg is not None:
                ready.add_metric([set_id], float(leg.state is VectorState.READY))
        yield ready
        queries = CounterMetricFamily(
            f"{PREFIX}dense_queries", "Queries of sets with a model.", labels=["docs"]
        )
        for set_id, count in self._vectors.queries.copy().items():
            queries.add_metric([set_id], count)
        yield queries
        dropouts = CounterMetricFamily(
            f"{PREFIX}dense_dropouts",
            "Times that dense search took no part or its vectors could not be made, by reason.",
            labels=["docs", "reason"],
        )
        for (set_id, reason), count in self._vectors.dropouts.copy().items():
            dropouts.add_metric([set_id, reason], count)
        yield dropouts

    def _endpoint(self) -> Iterator[Metric]:
        endpoint, budget = self._vectors.encoders.endpoint, self._vectors.encoders.budget
        yield CounterMetricFamily(
            f"{PREFIX}embedding_calls", "Calls to the endpoint.", endpoint.counts.calls
        )
        yield CounterMetricFamily(
            f"{PREFIX}embedding_retries", "Calls that were made again.", endpoint.counts.retries
        )
        yield CounterMetricFamily(
            f"{PREFIX}embedding_failures",
            "Times that the endpoint gave no vectors.",
            endpoint.counts.failures,
        )
        yield GaugeMetricFamily(
            f"{PREFIX}embedding_calls_today", "Calls counted today.", budget.calls_today
        )
        if budget.limit is not None:
            yield GaugeMetricFamily(
                f"{PREFIX}embedding_daily_limit", "Calls allowed a day.", budget.limit
            )
        yield CounterMetricFamily(
            f"{PREFIX}breaker_opened",
            "Times that the breaker opened.",
            endpoint.breaker.times_opened,
        )
        state = GaugeMetricFamily(
            f"{PREFIX}breaker_state", "1 for the state of the breaker.", labels=["state"]
        )
        for name in BreakerState:
            state.add_metric([name], float(name is endpoint.breaker.state))
        yield state

    def _caches(self) -> Iterator[Metric]:
        cache, shared = self._vectors.encoders.cache, self._vectors.encoders.shared
        found = CounterMetricFamily(
            f"{PREFIX}query_cache",
            "Query vectors asked of a cache (process or redis), by result.",
            labels=["cache", "result"],
        )
        found.add_metric(["process", "hit"], cache.counts.hits)
        found.add_metric(["process", "miss"], cache.counts.misses)
        if shared is not None:
            found.add_metric(["redis", "hit"], shared.counts.hits)
            found.add_metric(["redis", "miss"], shared.counts.misses)
            found.add_metric(["redis", "error"], shared.counts.errors)
        yield found
        yield CounterMetricFamily(
            f"{PREFIX}query_cache_evictions", "Vectors that made room.", cache.counts.evictions
        )
        yield GaugeMetricFamily(f"{PREFIX}query_cache_entries", "Vectors kept.", len(cache))
        yield GaugeMetricFamily(f"{PREFIX}query_cache_bytes", "Their size.", cache.bytes)


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
