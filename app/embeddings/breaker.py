"""A circuit breaker: after repeated failures nobody waits for an endpoint that is known to fail."""

import time
from collections.abc import Callable
from enum import StrEnum


class BreakerState(StrEnum):
    """Whether calls are let through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CircuitBreaker:
    """Opens after so many failures in a row; lets one call through when the rest is over.

    That call decides: success closes the breaker, failure opens it for twice as long. Belongs to
    one event loop.
    """

    def __init__(
        self,
        *,
        failures: int = 5,
        rest_seconds: float = 5.0,
        max_rest_seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start closed."""
        self._limit = failures
        self._first_rest = rest_seconds
        self._max_rest = max_rest_seconds
        self._clock = clock
        self._failures = 0
        self._rest = rest_seconds
        self._opened_at: float | None = None
        self._probing = False
        self._era = 0
        self.times_opened = 0

    @property
    def state(self) -> BreakerState:
        """The state now."""
        if self._opened_at is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self.rest_left > 0 else BreakerState.HALF_OPEN

    @property
    def rest_left(self) -> float:
        """Seconds until a call is let through again; 0 when closed or half open."""
        if self._opened_at is None:
            return 0.0
        return max(self._opened_at + self._rest - self._clock(), 0.0)

    def admit(self) -> int | None:
        """Return a ticket if a call may go out now; it must be handed to one of the methods below.

        What a call tells that began before the breaker opened or closed no longer counts.
        """
        state = self.state
        if state is BreakerState.OPEN or self._probing:
            return None
        if state is BreakerState.HALF_OPEN:
            self._probing = True
            self._era += 1
        return self._era

    def succeeded(self, ticket: int) -> None:
        """Note that a call went well."""
        if ticket != self._era:
            return
        self._failures = 0
        if self._probing:
            self._probing = False
            self._opened_at = None
            self._rest = self._first_rest
            self._era += 1

    def failed(self, ticket: int) -> None:
        """Note that a call failed."""
        if ticket != self._era:
            return
        self._failures += 1
        if self._probing:
            self._rest = min(self._rest * 2, self._max_rest)
        if self._probing or self._failures >= self._limit:
            self._probing = False
            self._opened_at = self._clock()
            self._era += 1
            self.times_opened += 1

    def abandoned(self, ticket: int) -> None:
        """Note that a call ended without telling anything, such as one that was cancelled."""
        if ticket == self._era:
            self._probing = False
