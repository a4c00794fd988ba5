from app.embeddings.breaker import BreakerState, CircuitBreaker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def ticket_of(breaker: CircuitBreaker) -> int:
    ticket = breaker.admit()
    assert ticket is not None
    return ticket


def opened(clock: Clock) -> CircuitBreaker:
    breaker = CircuitBreaker(failures=2, rest_seconds=5, max_rest_seconds=12, clock=clock)
    for _ in range(2):
        breaker.failed(ticket_of(breaker))
    return breaker


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    clock = Clock()
    breaker = CircuitBreaker(failures=2, rest_seconds=5, clock=clock)
    breaker.failed(ticket_of(breaker))
    breaker.succeeded(ticket_of(breaker))
    breaker.failed(ticket_of(breaker))
    assert breaker.state is BreakerState.CLOSED
    breaker.failed(ticket_of(breaker))
    assert breaker.state is BreakerState.OPEN
    assert breaker.admit() is None
    assert breaker.times_opened == 1


def test_one_call_is_let_through_after_the_rest_and_its_success_closes() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 5
    assert breaker.state is BreakerState.HALF_OPEN
    probe = ticket_of(breaker)
    assert breaker.admit() is None
    breaker.succeeded(probe)
    assert breaker.state is BreakerState.CLOSED
    assert breaker.admit() is not None


def test_a_failed_probe_doubles_the_rest_up_to_the_limit() -> None:
    clock = Clock()
    breaker = opened(clock)
    for rest in (10, 12, 12):
        clock.now += breaker.rest_left
        breaker.failed(ticket_of(breaker))
        assert breaker.rest_left == rest


def test_a_success_makes_the_next_rest_short_again() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 5
    breaker.failed(ticket_of(breaker))
    clock.now += 10
    breaker.succeeded(ticket_of(breaker))
    for _ in range(2):
        breaker.failed(ticket_of(breaker))
    assert breaker.rest_left == 5


def test_a_probe_that_is_given_up_makes_room_for_another() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 5
    breaker.abandoned(ticket_of(breaker))
    assert breaker.admit() is not None


def test_calls_from_before_it_opened_change_nothing() -> None:
    clock = Clock()
    breaker = CircuitBreaker(failures=2, rest_seconds=5, clock=clock)
    late = [ticket_of(breaker) for _ in range(3)]
    for _ in range(2):
        breaker.failed(ticket_of(breaker))
    breaker.succeeded(late[0])
    assert breaker.state is BreakerState.OPEN
    clock.now += 5
    probe = ticket_of(breaker)
    breaker.failed(late[1])
    breaker.abandoned(late[2])
    assert breaker.admit() is None
    breaker.succeeded(probe)
    assert breaker.state is BreakerState.CLOSED
