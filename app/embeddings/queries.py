"""Query vectors asked for once: the cache of the process, and one flight for equal queries."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from app.embeddings.cache import QueryCache
from app.embeddings.encoder import FloatArray, letters_of
from app.errors import DenseReason, DenseUnavailableError


class CachedQueries:
    """The queries of one model. Belongs to one event loop."""

    def __init__(self, model: str, cache: QueryCache) -> None:
        """Keep vectors of `model` in `cache`."""
        self._model = model
        self._cache = cache
        self._flights: dict[str, asyncio.Task[FloatArray]] = {}
        self._last: tuple[str, FloatArray] | None = None

    async def vector(
        self, text: str, fetch: Callable[[], Coroutine[Any, Any, FloatArray]]
    ) -> FloatArray:
        """Return the known vector of a query, or what `fetch` brings for all who wait for it.

        Raises:
            DenseUnavailableError: `fetch` raised it, or its vector says nothing.
        """
        known = self._cache.get(self._model, text)
        if known is not None:
            return known
        flight = self._flights.get(text)
        if flight is None:
            flight = asyncio.create_task(self._fly(text, fetch), name="embed-query")
            self._flights[text] = flight
            flight.add_done_callback(lambda task: self._landed(text, task))
        # Shielded: who gives up waiting does not take the answer from the others.
        return await asyncio.shield(flight)

    async def aclose(self) -> None:
        """Give up the queries under way."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    async def _fly(
        self, text: str, fetch: Callable[[], Coroutine[Any, Any, FloatArray]]
    ) -> FloatArray:
        vector = await fetch()
        self._check_differs(text, vector)
        self._cache.put(self._model, text, vector)
        return vector

    def _landed(self, text: str, flight: "asyncio.Task[FloatArray]") -> None:
        self._flights.pop(text, None)
        if not flight.cancelled():
            # Whoever asked may be gone: an exception that nobody fetches would be logged.
            flight.exception()

    def _check_differs(self, text: str, vector: FloatArray) -> None:
        """Refuse the vector that the query before had, unless the two are spelled alike."""
        letters = letters_of(text)
        last, self._last = self._last, (letters, vector)
        if last is not None and last[0] != letters and bool((last[1] == vector).all()):
            self._cache.forget(self._model, vector)
            raise DenseUnavailableError(
                DenseReason.DEGENERATE, "the model gave the same vector for different queries"
            )
