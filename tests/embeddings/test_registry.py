from pathlib import Path

import pytest

from app.embeddings.encoder import shown_model
from app.embeddings.openai import EndpointOptions
from app.embeddings.registry import EmbeddingOptions, Encoders
from app.errors import SettingsError

pytestmark = pytest.mark.anyio


def encoders(
    *, key: str | None = "k", model: str = "text-embedding-3-small", redis_url: str | None = None
) -> Encoders:
    endpoint = EndpointOptions("http://127.0.0.1:9/v1", key)
    return Encoders(EmbeddingOptions(endpoint, model, 1536, redis_url=redis_url))


@pytest.mark.parametrize(
    ("named", "model"),
    [
        ("endpoint:bge-m3", "endpoint:bge-m3"),
        ("endpoint:BAAI/bge-m3", "endpoint:BAAI/bge-m3"),
        ("text-embedding-3-large", "endpoint:text-embedding-3-large"),
        ("local:multilingual-e5-small", "local:multilingual-e5-small"),
        ("local:/models/mine", "local:/models/mine"),
        ("sentence-transformers/all-MiniLM-L6-v2", "local:sentence-transformers/all-MiniLM-L6-v2"),
        ("none", None),
        (None, "endpoint:text-embedding-3-small"),
    ],
)
async def test_a_name_says_where_its_model_runs(named: str | None, model: str | None) -> None:
    made = encoders()
    assert made.resolve(named) == model
    if model is not None:
        assert made.encoder(model).model == model
    await made.aclose()


async def test_without_a_key_only_sets_that_name_a_model_have_one() -> None:
    made = encoders(key=None)
    assert made.resolve(None) is None
    assert made.resolve("endpoint:m") == "endpoint:m"
    await made.aclose()


@pytest.mark.parametrize(
    ("default", "model"),
    [
        ("local:multilingual-e5-small", "local:multilingual-e5-small"),
        # Endpoints have models of such names, too.
        ("BAAI/bge-m3", "endpoint:BAAI/bge-m3"),
        ("endpoint:m", "endpoint:m"),
        ("none", None),
    ],
)
async def test_the_default_is_the_endpoints_unless_it_says_local(
    default: str, model: str | None
) -> None:
    made = encoders(model=default)
    assert made.resolve(None) == model
    await made.aclose()


async def test_the_named_dimension_is_that_of_the_default_model_only() -> None:
    made = encoders()
    assert made.encoder("endpoint:text-embedding-3-small").dimension == 1536
    assert made.encoder("endpoint:other").dimension is None
    await made.aclose()


async def test_one_model_has_one_encoder() -> None:
    made = encoders()
    assert made.encoder("endpoint:m") is made.encoder("endpoint:m")
    await made.aclose()


def test_a_wrong_redis_url_is_refused_without_its_password() -> None:
    with pytest.raises(SettingsError) as caught:
        encoders(redis_url="http://user:hunter2@example.com")
    assert "REDIS_URL" in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_the_count_of_calls_lies_in_the_data_folder(tmp_path: Path) -> None:
    endpoint = EndpointOptions("http://127.0.0.1:9/v1", "k")
    options = EmbeddingOptions(endpoint, "m", 8, daily_limit=5, data_dir=tmp_path)
    made = Encoders(options)
    await made.budget.spend()
    assert (tmp_path / "embedding-calls.json").is_file()
    await made.aclose()


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("endpoint:text-embedding-3-small", "endpoint:text-embedding-3-small"),
        ("endpoint:BAAI/bge-m3", "endpoint:BAAI/bge-m3"),
        ("local:a/model", "local:a/model"),
        ("local:/srv/models/mine", "local:mine"),
    ],
)
def test_a_model_is_named_without_the_folder_that_it_lies_in(model: str, shown: str) -> None:
    assert shown_model(model) == shown
