"""What replicas share through Redis, where there is one: query vectors and the count of calls.

Redis is never needed: when it does not answer, it is left alone for a while and each process goes
on with what it has.
"""

import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from app.embeddings.breaker import CircuitBreaker
from app.embeddings.encoder import FloatArray
from app.errors import OptionalDependencyError

logger = logging.getLogger(__name__)

_PREFIX = "liara-docs-mcp:"
_TIMEOUT_SECONDS = 0.1
_TWO_DAYS = 2 * 24 * 3600

T = TypeVar("T")


@dataclass(slots=True)
class SharedCounts:
    """How often Redis had a vector, had none, or did not answer."""

    hits: int = 0
    misses: int = 0
    errors: int = 0


class SharedCache:
    """Query vectors and counts in Redis. Queries are kept as hashes only."""

    def __init__(self, url: str, *, ttl_seconds: int) -> None:
        """Name the server; no connection is made before the first call.

        Raises:
            OptionalDependencyError: The package `redis` is not installed.
            ValueError: The URL is not one of Redis.
        """
        try:
            from redis import asyncio as client  # noqa: PLC0415
            from redis.asyncio.retry import Retry  # noqa: PLC0415
            from redis.backoff import NoBackoff  # noqa: PLC0415
            from redis.exceptions import RedisError  # noqa: PLC0415
        except ImportError as error:
            raise OptionalDependencyError(
                "REDIS_URL is set, but the package redis is not installed:"
                " install liara-docs-mcp[redis]"
            ) from error
        # Not a word of the server's errors is shown: they may repeat the URL with its password.
        self._errors: tuple[type[Exception], ...] = (RedisError, OSError, TimeoutError)
        self._redis: Any = client.Redis.from_url(
            url,
            socket_timeout=_TIMEOUT_SECONDS,
            socket_connect_timeout=_TIMEOUT_SECONDS,
            # The client's own retries would take seconds.
            retry=Retry(NoBackoff(), 0),
        )
        self._ttl_seconds = ttl_seconds
        self._breaker = CircuitBreaker(failures=1, rest_seconds=5)
        self.counts = SharedCounts()

    @property
    def is_up(self) -> bool:
        """Whether the last call was answered."""
        return self._breaker.rest_left == 0

    async def get(self, model: str, text: str, dimension: int | None) -> FloatArray | None:
        """Return the vector of a query that some replica has asked for."""
        raw = await self._ask(lambda: self._redis.get(_key(model, text)))
        vector = _decoded(raw, dimension)
        if vector is None:
            self.counts.misses += 1
        else:
            self.counts.hits += 1
        return vector

    async def put(self, model: str, text: str, vector: FloatArray) -> None:
        """Keep the vector of a query for the other replicas."""
        content = vector.astype("<f4").tobytes()
        await self._ask(lambda: self._redis.set(_key(model, text), content, ex=self._ttl_seconds))

    async def count(self, name: str) -> int | None:
        """Count one up and return the sum of all replicas; None when Redis does not answer."""

        async def increment() -> int:
            async with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.incr(_PREFIX + name)
                pipeline.expire(_PREFIX + name, _TWO_DAYS)
                return int((await pipeline.execute())[0])

        counted: int | None = await self._ask(increment)
        return counted

    async def aclose(self) -> None:
        """Close the connections."""
        with suppress(*self._errors):
            await self._redis.aclose()

    async def _ask(self, call: Callable[[], Any]) -> Any:
        ticket = self._breaker.admit()
        if ticket is None:
            return None
        try:
            answer = await call()
        except self._errors as error:
            self._breaker.failed(ticket)
            self.counts.errors += 1
            logger.warning("Redis does not answer, it is left alone: %s", type(error).__name__)
            return None
        except BaseException:
            self._breaker.abandoned(ticket)
            raise
        self._breaker.succeeded(ticket)
        return answer


def _key(model: str, text: str) -> str:
    digest = hashlib.sha256(f"{model}\0{text}".encode("utf-8", errors="replace")).hexdigest()
    return f"{_PREFIX}query:{digest}"


def _decoded(raw: Any, dimension: int | None) -> FloatArray | None:
    """Return the vector, unless something else lies there."""
    if not isinstance(raw, bytes) or not raw or len(raw) % 4:
        return None
    vector = np.frombuffer(raw, dtype="<f4")
    if dimension is not None and len(vector) != dimension:
        return None
    is_unit = np.isfinite(vector).all() and abs(float(vector @ vector) - 1) < 1e-3
    return vector.astype(np.float32) if is_unit else None
