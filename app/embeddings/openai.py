"""Vectors from any OpenAI-compatible /embeddings endpoint.

EmbeddingEndpoint is the connection, shared by all models: deadline, one retry if it fits, breaker,
budget, so many calls at once. EndpointEncoder is one model behind it, with the query cache.
"""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import httpx

from app.embeddings.breaker import CircuitBreaker
from app.embeddings.budget import DailyBudget
from app.embeddings.cache import QueryCache
from app.embeddings.encoder import FloatArray, check_variety, unit_rows
from app.embeddings.payload import parse_answer
from app.embeddings.queries import CachedQueries
from app.embeddings.shared_cache import SharedCache
from app.errors import DenseReason, DenseUnavailableError, SettingsError

QUERY_ATTEMPTS = 2
PASSAGE_ATTEMPTS = 4
PASSAGE_TIMEOUT_SECONDS = 60.0
PASSAGES_A_CALL = 64
MAX_ANSWER_BYTES = 32 * 1024 * 1024
_FIRST_WAIT_SECONDS = 0.05
_WORTH_A_RETRY = frozenset({408, 425, 429, 500, 502, 503, 504})
# Longer JSON would hold up the event loop for more than a few milliseconds.
_PARSE_IN_THREAD_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Where the endpoint is and how it may be used; without a key it is not asked at all."""

    base_url: str
    api_key: str | None = field(repr=False)
    timeout_seconds: float = 1.5
    max_calls: int = 8
    ca_bundle: Path | None = None
    no_proxy_hosts: tuple[str, ...] = ()


@dataclass(slots=True)
class EndpointCounts:
    """What went out: `calls` with the retries among them, and those that failed in the end."""

    calls: int = 0
    retries: int = 0
    failures: int = 0


class _AttemptError(Exception):
    """One attempt failed; `wait_seconds` is None when another one would make no sense."""

    def __init__(self, error: DenseUnavailableError, wait_seconds: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait_seconds = wait_seconds


class EmbeddingEndpoint:
    """One endpoint over one HTTP client with kept-alive connections. Belongs to one event loop."""

    def __init__(
        self,
        options: EndpointOptions,
        *,
        budget: DailyBudget | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        """Prepare the client; nothing is connected before the first call.

        Raises:
            SettingsError: The CA bundle cannot be read.
        """
        self.options = options
        self.budget = budget or DailyBudget(None)
        self.breaker = breaker or CircuitBreaker()
        self.counts = EndpointCounts()
        self._slots = asyncio.Semaphore(options.max_calls)
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {options.api_key}"} if options.api_key else None,
            verify=_tls(options.ca_bundle),
            mounts={f"all://{host}": None for host in options.no_proxy_hosts},
            # A redirect could carry the key elsewhere: it counts as a failed call.
            follow_redirects=False,
            timeout=PASSAGE_TIMEOUT_SECONDS,
            limits=httpx.Limits(
                max_connections=options.max_calls, max_keepalive_connections=options.max_calls
            ),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def check_usable(self) -> None:
        """Refuse at once what would be refused anyway.

        Raises:
            DenseUnavailableError: No key, the breaker is open, or the budget is spent.
        """
        if not self.options.api_key:
            raise no_key()
        if self.breaker.rest_left > 0:
            raise self._resting()
        if self.budget.is_spent:
            raise self.budget.refusal()

    async def embed(
        self,
        model: str,
        texts: Sequence[str],
        *,
        dimension: int | None,
        timeout_seconds: float,
        attempts: int = QUERY_ATTEMPTS,
    ) -> FloatArray:
        """Return one row for each text, within the deadline.

        Raises:
            DenseUnavailableError: The endpoint could not be asked or gave no such rows.
        """
        self.check_usable()
        deadline = monotonic() + timeout_seconds
        stage = DenseReason.BUSY
        try:
            async with asyncio.timeout(timeout_seconds), self._slots:
                stage = DenseReason.TIMEOUT
                return await self._guarded(model, texts, dimension, deadline, attempts)
        except TimeoutError:
            said = {
                DenseReason.BUSY: f"{self.options.max_calls} embedding calls were running already",
                DenseReason.TIMEOUT: "the embeddings endpoint did not answer",
            }
            raise DenseUnavailableError(
                stage, f"{said[stage]} within {timeout_seconds:.1f} s"
            ) from None

    async def _guarded(
        self,
        model: str,
        texts: Sequence[str],
        dimension: int | None,
        deadline: float,
        attempts: int,
    ) -> FloatArray:
        """Make the call if the breaker lets it through, and tell the breaker how it went."""
        ticket = self.breaker.admit()
        if ticket is None:
            raise self._resting()
        try:
            rows = await self._with_retries(model, texts, dimension, deadline, attempts)
        except DenseUnavailableError as error:
            if error.reason is DenseReason.BUDGET_SPENT:
                self.breaker.abandoned(ticket)
            else:
                self.counts.failures += 1
                self.breaker.failed(ticket)
            raise
        except asyncio.CancelledError:
            # The deadline, or a shutdown: only the first tells something about the endpoint.
            if monotonic() >= deadline:
                self.counts.failures += 1
                self.breaker.failed(ticket)
            else:
                self.breaker.abandoned(ticket)
            raise
        self.breaker.succeeded(ticket)
        return rows

    async def _with_retries(
        self,
        model: str,
        texts: Sequence[str],
        dimension: int | None,
        deadline: float,
        attempts: int,
    ) -> FloatArray:
        for attempt in range(1, attempts + 1):
            started = monotonic()
            try:
                return await self._attempt(model, texts, dimension)
            except _AttemptError as failure:
                now = monotonic()
                wait = (failure.wait_seconds or 0.0) * 2 ** (attempt - 1)
                # The next try is expected to take as long as this one.
                fits = now + wait + (now - started) < deadline
                if failure.wait_seconds is None or attempt == attempts or not fits:
                    raise failure.error from None
                self.counts.retries += 1
                await asyncio.sleep(wait)
        raise AssertionError("there is at least one attempt")

    async def _attempt(self, model: str, texts: Sequence[str], dimension: int | None) -> FloatArray:
        await self.budget.spend()
        self.counts.calls += 1
        request = {"model": model, "input": list(texts), "encoding_format": "float"}
        body = await self._post(request)
        if len(body) > _PARSE_IN_THREAD_BYTES:
            rows = await asyncio.to_thread(parse_answer, body)
        else:
            rows = parse_answer(body)
        return unit_rows(rows, len(texts), dimension)

    async def _post(self, request: Mapping[str, object]) -> bytes:
        url = f"{self.options.base_url}/embeddings"
        try:
            async with self._client.stream("POST", url, json=request) as response:
                # Read in any case: a connection with an unread answer cannot be kept.
                body = await _read(response)
                if response.status_code != httpx.codes.OK:
                    raise _refused(response)
                return body
        except httpx.DecodingError:
            raise DenseUnavailableError(
                DenseReason.MALFORMED, "the embeddings endpoint sent a damaged answer"
            ) from None
        except httpx.TimeoutException:
            raise _AttemptError(
                DenseUnavailableError(
                    DenseReason.TIMEOUT, "the embeddings endpoint did not answer in time"
                )
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            # Only the kind: messages of transports may name proxies with their passwords.
            raise _AttemptError(
                DenseUnavailableError(
                    DenseReason.CONNECTION,
                    f"the embeddings endpoint cannot be reached ({type(error).__name__})",
                ),
                _FIRST_WAIT_SECONDS,
            ) from None

    def _resting(self) -> DenseUnavailableError:
        rest = max(self.breaker.rest_left, 1.0)
        return DenseUnavailableError(
            DenseReason.BREAKER_OPEN,
            "the embeddings endpoint has failed repeatedly;"
            f" it is tried again in about {rest:.0f} s",
        )


class EndpointEncoder:
    """One model of an endpoint; equal queries are asked for once."""

    batch_size = PASSAGES_A_CALL

    def __init__(
        self,
        endpoint: EmbeddingEndpoint,
        name: str,
        dimension: int | None,
        *,
        cache: QueryCache,
        shared: SharedCache | None = None,
    ) -> None:
        """Name the model; its dimension is learned from the first answer where it is None."""
        self._endpoint = endpoint
        self._name = name
        self._dimension = dimension
        self._queries = CachedQueries(self.model, cache)
        self._shared = shared
        self._background: set[asyncio.Task[None]] = set()

    @property
    def model(self) -> str:
        """The name that vectors of this model are stamped with."""
        return f"endpoint:{self._name}"

    @property
    def dimension(self) -> int | None:
        """The length of its vectors; None until the model has told."""
        return self._dimension

    async def prepare(self) -> None:
        """Nothing: a connection that waits for its first query may be closed by then."""

    async def encode_query(self, text: str) -> FloatArray:
        """Return the vector of one query: a known one, or the endpoint's within the deadline.

        Raises:
            DenseUnavailableError: There is none.
        """
        return await self._queries.vector(text, lambda: self._fetch(text))

    async def encode_passages(
        self,
        texts: Sequence[str],
        *,
        as_queries: bool = False,
    ) -> FloatArray:
        """Return one row for each text of a batch; endpoints know no difference to queries.

        Raises:
            DenseUnavailableError: The endpoint could not be asked or gave no such rows.
        """
        rows = await self._endpoint.embed(
            self._name,
            texts,
            dimension=self._dimension,
            timeout_seconds=PASSAGE_TIMEOUT_SECONDS,
            attempts=PASSAGE_ATTEMPTS,
        )
        check_variety(texts, rows)
        self._dimension = rows.shape[1]
        return rows

    async def aclose(self) -> None:
        """Give up queries under way; the endpoint is closed by its owner."""
        await self._queries.aclose()
        await asyncio.gather(*self._background, return_exceptions=True)

    async def _fetch(self, text: str) -> FloatArray:
        deadline = monotonic() + self._endpoint.options.timeout_seconds
        if self._shared is not None:
            shared = await self._shared.get(self.model, text, self._dimension)
            if shared is not None:
                return shared
        rows = await self._endpoint.embed(
            self._name,
            [text],
            dimension=self._dimension,
            timeout_seconds=max(deadline - monotonic(), 0.0),
        )
        vector: FloatArray = rows[0]
        self._dimension = len(vector)
        if self._shared is not None:
            # Nobody waits until the other replicas know.
            task = asyncio.create_task(self._shared.put(self.model, text, vector))
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        return vector


def no_key() -> DenseUnavailableError:
    """Return what a model of the endpoint is refused with when there is no key."""
    return DenseUnavailableError(DenseReason.NO_KEY, "AVALAI_API_KEY is not set")


def _tls(ca_bundle: Path | None) -> ssl.SSLContext | bool:
    if ca_bundle is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(ca_bundle))
    except OSError as error:
        raise SettingsError(f"CA_BUNDLE: {ca_bundle} cannot be read: {error}") from error


def _refused(response: httpx.Response) -> _AttemptError:
    status = response.status_code
    error = DenseUnavailableError(
        DenseReason.STATUS, f"the embeddings endpoint answered HTTP {status}"
    )
    if status not in _WORTH_A_RETRY:
        return _AttemptError(error)
    asked = response.headers.get("Retry-After", "")
    return _AttemptError(
        error, float(asked) if asked.isascii() and asked.isdigit() else _FIRST_WAIT_SECONDS
    )


async def _read(response: httpx.Response) -> bytes:
    parts = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise DenseUnavailableError(
                DenseReason.MALFORMED, "the embeddings endpoint sent too long an answer"
            )
        parts.append(part)
    return b"".join(parts)
