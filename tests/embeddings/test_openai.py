import asyncio
import logging
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.embeddings.breaker import BreakerState, CircuitBreaker
from app.embeddings.budget import DailyBudget
from app.embeddings.cache import QueryCache
from app.embeddings.openai import EmbeddingEndpoint, EndpointEncoder, EndpointOptions
from app.errors import DenseReason, DenseUnavailableError, SettingsError
from tests.embeddings.endpoint import KEY, MODEL, Endpoint, serving_embeddings
from tests.embeddings.models import DIMENSION, rows_of, vector_of

pytestmark = pytest.mark.anyio

Connect = Callable[..., EndpointEncoder]


@pytest.fixture(autouse=True)
def no_proxy_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Makes encoders of an endpoint that are closed when the test ends."""
    opened: list[Any] = []

    def make(
        served: Endpoint,
        *,
        dimension: int | None = DIMENSION,
        cache: QueryCache | None = None,
        budget: DailyBudget | None = None,
        breaker: CircuitBreaker | None = None,
        **options: Any,
    ) -> EndpointEncoder:
        given = {"base_url": served.base_url, "api_key": KEY} | options
        endpoint = EmbeddingEndpoint(EndpointOptions(**given), budget=budget, breaker=breaker)
        encoder = EndpointEncoder(endpoint, MODEL, dimension, cache=cache or QueryCache())
        opened.extend((encoder, endpoint))
        return encoder

    yield make
    for item in opened:
        await item.aclose()


async def refusal_of(encoder: EndpointEncoder, query: str = "deploy") -> DenseUnavailableError:
    with pytest.raises(DenseUnavailableError) as caught:
        await encoder.encode_query(query)
    return caught.value


@pytest.mark.parametrize("mode", ["good", "base64", "backwards"])
async def test_vectors_come_in_the_order_of_the_texts(
    endpoint: Endpoint, connect: Connect, mode: str
) -> None:
    endpoint.mode = mode
    texts = ["deploy an app", "استقرار برنامه", "disk"]
    rows = await connect(endpoint).encode_passages(texts)
    np.testing.assert_allclose(rows, rows_of(texts), atol=1e-6)


async def test_a_call_says_what_the_protocol_asks_for(endpoint: Endpoint, connect: Connect) -> None:
    await connect(endpoint).encode_query("deploy")
    assert endpoint.keys == {f"Bearer {KEY}"}
    assert endpoint.bodies == [{"model": MODEL, "input": ["deploy"], "encoding_format": "float"}]


async def test_vectors_of_any_length_have_length_one(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.mode = "constant"
    vector = await connect(endpoint).encode_query("deploy")
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


async def test_the_dimension_is_learned_where_none_is_named(
    endpoint: Endpoint, connect: Connect
) -> None:
    encoder = connect(endpoint, dimension=None)
    assert encoder.dimension is None
    await encoder.encode_query("deploy")
    assert encoder.dimension == DIMENSION
    endpoint.mode = "other dimension"
    assert (await refusal_of(encoder, "disk")).reason is DenseReason.WRONG_DIMENSION


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("cut", DenseReason.CONNECTION),
        ("html", DenseReason.MALFORMED),
        ("ragged", DenseReason.MALFORMED),
        ("too few", DenseReason.WRONG_COUNT),
        ("other dimension", DenseReason.WRONG_DIMENSION),
        ("nan", DenseReason.NOT_FINITE),
        ("zeros", DenseReason.ZERO_VECTOR),
        ("401", DenseReason.STATUS),
        ("503", DenseReason.STATUS),
        ("redirect", DenseReason.STATUS),
    ],
)
async def test_each_bad_answer_has_its_reason(
    endpoint: Endpoint, connect: Connect, mode: str, reason: DenseReason
) -> None:
    endpoint.mode = mode
    assert (await refusal_of(connect(endpoint))).reason is reason


async def test_without_a_key_nothing_is_asked(endpoint: Endpoint, connect: Connect) -> None:
    error = await refusal_of(connect(endpoint, api_key=None))
    assert error.reason is DenseReason.NO_KEY
    assert endpoint.calls == 0


async def test_an_endpoint_that_does_not_listen_is_a_connection_reason(
    endpoint: Endpoint, connect: Connect
) -> None:
    encoder = connect(endpoint, base_url="http://127.0.0.1:9/v1")
    assert (await refusal_of(encoder)).reason is DenseReason.CONNECTION


async def test_a_silent_endpoint_costs_the_deadline_and_no_more(
    endpoint: Endpoint, connect: Connect
) -> None:
    endpoint.mode = "held"
    encoder = connect(endpoint, timeout_seconds=0.2)
    started = time.monotonic()
    assert (await refusal_of(encoder)).reason is DenseReason.TIMEOUT
    # Generous: what must not happen is that the client's own limit of a minute counts.
    assert time.monotonic() - started < 5
    assert endpoint.calls == 1


@pytest.mark.parametrize("same", ["deploy", "Deploy!"])
async def test_one_vector_for_different_queries_is_degenerate(
    endpoint: Endpoint, connect: Connect, same: str
) -> None:
    endpoint.mode = "constant"
    cache = QueryCache()
    encoder = connect(endpoint, cache=cache)
    await encoder.encode_query("deploy")
    # Models may read two spellings of one text alike.
    await encoder.encode_query(same)
    assert (await refusal_of(encoder, "disk")).reason is DenseReason.DEGENERATE
    assert len(cache) == 0


async def test_one_vector_for_different_passages_is_degenerate(
    endpoint: Endpoint, connect: Connect
) -> None:
    endpoint.mode = "constant"
    with pytest.raises(DenseUnavailableError) as caught:
        await connect(endpoint).encode_passages(["deploy", "disk"])
    assert caught.value.reason is DenseReason.DEGENERATE


async def test_a_failed_call_is_tried_once_more_when_there_is_time(
    endpoint: Endpoint, connect: Connect
) -> None:
    endpoint.modes.append("503")
    vector = await connect(endpoint, timeout_seconds=20).encode_query("deploy")
    np.testing.assert_allclose(vector, vector_of("deploy"), atol=1e-6)
    assert endpoint.calls == 2


async def test_a_query_is_tried_twice_at_most(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.mode = "503"
    await refusal_of(connect(endpoint, timeout_seconds=20))
    assert endpoint.calls == 2


@pytest.mark.parametrize("mode", ["429 later", "401", "html"])
async def test_no_retry_that_is_too_late_or_useless(
    endpoint: Endpoint, connect: Connect, mode: str
) -> None:
    endpoint.mode = mode
    await refusal_of(connect(endpoint))
    assert endpoint.calls == 1


async def test_equal_queries_at_once_are_asked_once(endpoint: Endpoint, connect: Connect) -> None:
    encoder = connect(endpoint, timeout_seconds=20)
    vectors = await asyncio.gather(*(encoder.encode_query("deploy") for _ in range(20)))
    assert endpoint.calls == 1
    assert all((vector == vectors[0]).all() for vector in vectors)


async def test_who_gives_up_leaves_the_answer_to_the_others(
    endpoint: Endpoint, connect: Connect
) -> None:
    endpoint.mode = "held"
    encoder = connect(endpoint, timeout_seconds=20)
    first = asyncio.create_task(encoder.encode_query("deploy"))
    second = asyncio.create_task(encoder.encode_query("deploy"))
    assert await asyncio.to_thread(endpoint.called.wait, 20)
    first.cancel()
    endpoint.gate.set()
    np.testing.assert_allclose(await second, vector_of("deploy"), atol=1e-6)
    assert first.cancelled()
    assert endpoint.calls == 1


async def test_a_query_that_is_known_is_not_asked_again(
    endpoint: Endpoint, connect: Connect
) -> None:
    encoder = connect(endpoint)
    await encoder.encode_query("deploy")
    endpoint.mode = "503"
    np.testing.assert_allclose(await encoder.encode_query("deploy"), vector_of("deploy"), atol=1e-6)
    assert endpoint.calls == 1


async def test_connections_are_kept_and_their_number_is_bounded(
    endpoint: Endpoint, connect: Connect
) -> None:
    encoder = connect(endpoint, max_calls=3, timeout_seconds=20)
    for round_number in range(3):
        queries = [f"query {round_number} {number}" for number in range(20)]
        await asyncio.gather(*map(encoder.encode_query, queries))
    assert endpoint.calls == 60
    assert endpoint.most_running <= 3
    assert len(endpoint.connections) <= 3


async def test_a_query_that_finds_all_calls_taken_is_told_so(
    endpoint: Endpoint, connect: Connect
) -> None:
    endpoint.mode = "held"
    encoder = connect(endpoint, max_calls=1, timeout_seconds=0.4)
    first = asyncio.create_task(refusal_of(encoder, "deploy"))
    assert await asyncio.to_thread(endpoint.called.wait, 20)
    passages = asyncio.create_task(refusal_of(encoder, "disk"))
    assert (await first).reason is DenseReason.TIMEOUT
    # It had no slot until its time was nearly up.
    assert (await passages).reason in {DenseReason.BUSY, DenseReason.TIMEOUT}


async def test_the_breaker_stops_asking_and_one_success_closes_it(
    endpoint: Endpoint, connect: Connect
) -> None:
    now = [0.0]
    breaker = CircuitBreaker(failures=3, rest_seconds=5, clock=lambda: now[0])
    encoder = connect(endpoint, breaker=breaker)
    endpoint.mode = "401"
    for number in range(3):
        assert (await refusal_of(encoder, f"q{number}")).reason is DenseReason.STATUS
    assert (await refusal_of(encoder, "q3")).reason is DenseReason.BREAKER_OPEN
    assert endpoint.calls == 3
    now[0] = 6.0
    endpoint.mode = "good"
    await encoder.encode_query("q4")
    assert breaker.state is BreakerState.CLOSED
    await encoder.encode_query("q5")


async def test_many_queries_at_a_dead_endpoint_make_few_calls(
    endpoint: Endpoint, connect: Connect
) -> None:
    endpoint.mode = "401"
    encoder = connect(endpoint, max_calls=4, timeout_seconds=20)
    errors = await asyncio.gather(*(refusal_of(encoder, f"query {n}") for n in range(200)))
    assert {error.reason for error in errors} == {DenseReason.STATUS, DenseReason.BREAKER_OPEN}
    # Five open the breaker; those under way at that moment may still end.
    assert endpoint.calls <= 5 + 4
    assert len(endpoint.connections) <= 4


async def test_a_spent_budget_makes_no_call(
    endpoint: Endpoint, connect: Connect, tmp_path: Path
) -> None:
    encoder = connect(endpoint, budget=DailyBudget(2, tmp_path / "calls.json"))
    await encoder.encode_query("one")
    await encoder.encode_query("two")
    error = await refusal_of(encoder, "three")
    assert error.reason is DenseReason.BUDGET_SPENT
    assert "UTC" in str(error)
    assert endpoint.calls == 2


async def test_the_key_is_in_no_log_and_no_error(
    endpoint: Endpoint, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = []
    for number, mode in enumerate(["good", "401", "503", "html", "nan", "redirect"]):
        endpoint.mode = mode
        # A breaker of its own each, so that all of them are asked.
        encoder = connect(endpoint)
        try:
            await encoder.encode_query(f"query {number}")
        except DenseUnavailableError as error:
            said.append(f"{error!r} {error.__cause__!r} {error.__context__!r}")
    said.append(repr(EndpointOptions(endpoint.base_url, KEY)))
    assert endpoint.calls >= 6
    assert KEY not in "\n".join(said) + caplog.text


async def test_hosts_without_proxy_are_reached_directly(
    endpoint: Endpoint, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert (await refusal_of(connect(endpoint))).reason is DenseReason.CONNECTION
    await connect(endpoint, no_proxy_hosts=("127.0.0.1",)).encode_query("deploy")
    assert endpoint.calls == 1


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    crt, key = folder / "ca.pem", folder / "key.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key), "-out", str(crt)],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here")
    return crt, key


@pytest.fixture
def company_endpoint(certificate: tuple[Path, Path]) -> Iterator[Endpoint]:
    with serving_embeddings(certificate) as served:
        yield served


async def test_a_ca_bundle_makes_a_company_endpoint_trusted(
    certificate: tuple[Path, Path], company_endpoint: Endpoint, connect: Connect
) -> None:
    assert (await refusal_of(connect(company_endpoint))).reason is DenseReason.CONNECTION
    trusting = connect(company_endpoint, ca_bundle=certificate[0])
    assert (await trusting.encode_query("deploy")).shape == (DIMENSION,)


async def test_a_ca_bundle_that_cannot_be_read_is_a_wrong_setting(tmp_path: Path) -> None:
    options = EndpointOptions("http://127.0.0.1:9/v1", KEY, ca_bundle=tmp_path / "none.pem")
    with pytest.raises(SettingsError):
        EmbeddingEndpoint(options)
