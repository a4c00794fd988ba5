import sys

import numpy as np
import pytest
from redis import Redis

from app.embeddings.cache import QueryCache
from app.embeddings.openai import EmbeddingEndpoint, EndpointEncoder, EndpointOptions
from app.embeddings.shared_cache import SharedCache
from app.errors import OptionalDependencyError
from tests.embeddings.conftest import RedisServer
from tests.embeddings.endpoint import KEY, MODEL, Endpoint
from tests.embeddings.models import DIMENSION, vector_of

pytestmark = pytest.mark.anyio


async def test_what_one_replica_asked_the_other_knows(redis_server: RedisServer) -> None:
    one, other = (SharedCache(redis_server.url, ttl_seconds=60) for _ in range(2))
    vector = vector_of("deploy")
    assert await other.get("m", "deploy", DIMENSION) is None
    await one.put("m", "deploy", vector)
    found = await other.get("m", "deploy", DIMENSION)
    assert found is not None
    np.testing.assert_array_equal(found, vector)
    assert await other.get("another model", "deploy", DIMENSION) is None
    assert (other.counts.hits, other.counts.misses) == (1, 2)
    for cache in (one, other):
        await cache.aclose()


async def test_entries_expire_and_hold_no_query_text(redis_server: RedisServer) -> None:
    cache = SharedCache(redis_server.url, ttl_seconds=60)
    await cache.put("m", "a secret question", vector_of("a secret question"))
    with Redis(port=redis_server.port) as raw:
        (key,) = raw.keys()
        assert b"secret" not in key
        assert 0 < raw.ttl(key) <= 60
    await cache.aclose()


@pytest.mark.parametrize("junk", [b"", b"abc", b"\0" * 4 * DIMENSION, b"\xff" * 4 * DIMENSION])
async def test_junk_in_redis_is_no_vector(redis_server: RedisServer, junk: bytes) -> None:
    cache = SharedCache(redis_server.url, ttl_seconds=60)
    await cache.put("m", "deploy", vector_of("deploy"))
    with Redis(port=redis_server.port) as raw:
        raw.set(raw.keys()[0], junk)
    assert await cache.get("m", "deploy", DIMENSION) is None
    await cache.aclose()


async def test_a_vector_of_another_dimension_is_not_taken(redis_server: RedisServer) -> None:
    cache = SharedCache(redis_server.url, ttl_seconds=60)
    await cache.put("m", "deploy", vector_of("deploy", 32))
    assert await cache.get("m", "deploy", DIMENSION) is None
    await cache.aclose()


async def test_without_redis_the_process_cache_serves_on(
    redis_server: RedisServer, endpoint: Endpoint
) -> None:
    shared = SharedCache(redis_server.url, ttl_seconds=60)
    source = EmbeddingEndpoint(EndpointOptions(endpoint.base_url, KEY, timeout_seconds=20))
    encoder = EndpointEncoder(source, MODEL, DIMENSION, cache=QueryCache(), shared=shared)
    await encoder.encode_query("one")
    redis_server.stop()
    for query in ("two", "three", "two", "one"):
        np.testing.assert_allclose(await encoder.encode_query(query), vector_of(query), atol=1e-6)
    assert endpoint.calls == 3
    assert not shared.is_up
    # After the first failure Redis is left alone; one write may have been under way.
    assert shared.counts.errors <= 2
    for item in (encoder, source, shared):
        await item.aclose()


async def test_a_replica_takes_the_vector_instead_of_asking(
    redis_server: RedisServer, endpoint: Endpoint
) -> None:
    source = EmbeddingEndpoint(EndpointOptions(endpoint.base_url, KEY, timeout_seconds=20))
    for _ in range(2):
        shared = SharedCache(redis_server.url, ttl_seconds=60)
        encoder = EndpointEncoder(source, MODEL, DIMENSION, cache=QueryCache(), shared=shared)
        await encoder.encode_query("deploy")
        await encoder.aclose()
        await shared.aclose()
    assert endpoint.calls == 1
    await source.aclose()


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
        monkeypatch.delitem(sys.modules, name)
    # None in sys.modules is how Python marks a package that cannot be imported.
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(OptionalDependencyError, match=r"liara-docs-mcp\[redis\]"):
        SharedCache("redis://127.0.0.1/0", ttl_seconds=60)
