"""Every way in which dense search drops out, through the running server.

The request is answered, and the reason stands in the answer, in /healthz and in /metrics.
"""

import json
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import httpx
import numpy as np
import numpy.typing as npt
import pytest

from tests.embeddings.endpoint import KEY, Endpoint, serving_embeddings
from tests.embeddings.models import DIMENSION, rows_of
from tests.server.serving import Served, serving

NOTES = {
    "backup.md": "# Backups\n\nThe database is saved every night and kept for a week.\n",
    "domain.md": "# Domains\n\nPoint a custom domain at the app with a CNAME record.\n",
    "disk.md": "# Disks\n\nFiles outside of a disk are lost with every release.\n",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with serving_embeddings() as served:
        yield served


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_notes(tmp_path / "notes")


def write_notes(folder: Path) -> Path:
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def environment(tmp_path: Path, sets: Mapping[str, Any], **more: str) -> dict[str, str]:
    config = tmp_path / "config.json"
    content = {"docs": sets, "default": {"docs": next(iter(sets))}}
    config.write_text(json.dumps(content), encoding="utf-8")
    return {
        "PORT": "0",
        "LIARA": "off",
        "DATA_DIR": str(tmp_path / "data"),
        "DOCS_CONFIG": str(config),
        "EMBED_TIMEOUT_SECONDS": "0.4",
        "EMBED_MODEL": "trigrams",
        "EMBED_DIM": str(DIMENSION),
    } | more


def with_endpoint(endpoint: Endpoint, **more: str) -> dict[str, str]:
    return {"AVALAI_API_KEY": KEY, "AVALAI_BASE_URL": endpoint.base_url} | more


def health(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{served.url}/healthz").json()
    return found


def dense_of(served: Served, docs: str = "notes") -> dict[str, Any]:
    dense: dict[str, Any] = health(served)["docs"][docs]["dense"]
    return dense


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never came true")


def wait_for_vectors(served: Served, docs: str = "notes") -> None:
    wait_until(lambda: dense_of(served, docs)["state"] == "ready")


def ask(served: Served, question: str, docs: str = "notes") -> dict[str, Any]:
    response = served.call(
        "tools/call",
        {"name": "ask_docs", "arguments": {"question": question, "docs": docs}},
    )
    result = response.json()["result"]
    assert not result.get("isError"), result
    answer: dict[str, Any] = json.loads(result["content"][0]["text"])
    return answer


def dropouts(served: Served, reason: str, docs: str = "notes") -> float:
    text = httpx.get(f"{served.url}/metrics").text
    label = re.escape(f'dense_dropouts_total{{docs="{docs}",reason="{reason}"}}')
    found = re.search(rf"{label} (\S+)", text)
    return float(found[1]) if found else 0.0


def assert_dropped_out(served: Served, reason: str, question: str, docs: str = "notes") -> None:
    before = dropouts(served, reason, docs)
    answer = ask(served, question, docs)
    assert answer["citations"], "the words still find something"
    assert answer["degraded"].startswith(f"dense search took no part ({reason}): ")
    assert dropouts(served, reason, docs) == before + 1
    told = health(served)
    assert told["docs"][docs]["dense"]["reason"] == reason
    assert told["docs"][docs]["dense"]["message"]
    assert (told["status"], told["dense_search"]) == ("degraded", False)


@contextmanager
def ready(endpoint: Endpoint, tmp_path: Path, source: Path, **more: str) -> Iterator[Served]:
    """Serve the notes with their vectors made."""
    environ = environment(tmp_path, {"notes": {"source": str(source)}})
    with serving(environ | with_endpoint(endpoint) | more) as served:
        wait_for_vectors(served)
        yield served


@pytest.fixture(scope="module")
def notes(endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the reasons that come and go with a single call."""
    folder = tmp_path_factory.mktemp("notes")
    endpoint.reset()
    with ready(endpoint, folder, write_notes(folder / "notes")) as served:
        yield served


@pytest.fixture(scope="module")
def prepared(endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The notes, and a data folder that holds their vectors."""
    folder = tmp_path_factory.mktemp("prepared")
    endpoint.reset()
    with ready(endpoint, folder, write_notes(folder / "notes")):
        pass
    return folder / "notes", folder / "data"


@pytest.fixture
def copied(prepared: tuple[Path, Path], tmp_path: Path) -> Path:
    """The folder of the prepared notes; `tmp_path` has a copy of their vectors."""
    source, data = prepared
    shutil.copytree(data, tmp_path / "data")
    return source


@pytest.fixture(autouse=True)
def good_again(endpoint: Endpoint) -> Iterator[None]:
    endpoint.reset()
    yield
    endpoint.reset()


def test_vectors_are_made_after_the_start_and_take_part(notes: Served, endpoint: Endpoint) -> None:
    answer = ask(notes, "where do customdomains point")
    assert "degraded" not in answer
    assert answer["citations"][0]["path"] == "domain.md"
    assert endpoint.texts == [["where do customdomains point"]]
    told = health(notes)
    assert (told["status"], told["dense_search"]) == ("ok", True)
    assert told["docs"]["notes"]["dense"] == {
        "model": "endpoint:trigrams",
        "state": "ready",
        "reason": None,
        "message": None,
    }


def test_a_query_without_a_common_word_is_answered_by_its_vector(notes: Served) -> None:
    answer = ask(notes, "databas sav nigh")
    assert answer["citations"][0]["path"] == "backup.md"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("held", "timeout"),
        ("503", "status"),
        ("html", "malformed"),
        ("too few", "wrong_count"),
        ("other dimension", "wrong_dimension"),
        ("nan", "not_finite"),
        ("zeros", "zero_vector"),
    ],
)
def test_a_failing_endpoint_costs_the_vectors_and_not_the_answer(
    notes: Served, endpoint: Endpoint, mode: str, reason: str
) -> None:
    endpoint.mode = mode
    assert_dropped_out(notes, reason, f"custom domain when {mode}")
    endpoint.mode = "good"
    endpoint.gate.set()
    assert "degraded" not in ask(notes, f"custom domain after {mode}")
    told = health(notes)
    assert (told["status"], told["dense_search"]) == ("ok", True)


def test_an_endpoint_that_gives_one_vector_for_all_is_found_out(
    notes: Served, endpoint: Endpoint
) -> None:
    endpoint.mode = "constant"
    # The first one looks like any other.
    ask(notes, "a first custom domain")
    assert_dropped_out(notes, "degenerate", "a second custom domain")
    endpoint.mode = "good"
    assert "degraded" not in ask(notes, "a third custom domain")


def test_an_endpoint_that_keeps_failing_is_left_alone(
    endpoint: Endpoint, tmp_path: Path, source: Path
) -> None:
    with ready(endpoint, tmp_path, source) as served:
        endpoint.mode = "401"
        for number in range(5):
            assert_dropped_out(served, "status", f"custom domain {number}")
        calls = endpoint.calls
        assert_dropped_out(served, "breaker_open", "custom domain again")
        assert endpoint.calls == calls
        assert health(served)["embeddings"]["breaker"] == "open"
        assert 'breaker_state{state="open"} 1.0' in httpx.get(f"{served.url}/metrics").text


def test_a_spent_budget_rests_until_midnight(
    endpoint: Endpoint, tmp_path: Path, source: Path
) -> None:
    # One call makes the vectors of the three notes.
    with ready(endpoint, tmp_path, source, EMBED_DAILY_LIMIT="2") as served:
        assert "degraded" not in ask(served, "custom domain")
        assert_dropped_out(served, "budget_spent", "another custom domain")
        assert "00:00 UTC" in dense_of(served)["message"]
        # What is known costs nothing.
        assert "degraded" not in ask(served, "custom domain")
        assert health(served)["embeddings"]["calls_today"] == 2


def test_a_model_of_the_endpoint_without_a_key(tmp_path: Path, source: Path) -> None:
    sets = {"notes": {"source": str(source), "embedding_model": "endpoint:trigrams"}}
    with serving(environment(tmp_path, sets)) as served:
        wait_until(lambda: health(served)["docs"]["notes"]["state"] == "fresh")
        assert_dropped_out(served, "no_key", "custom domain")


def test_without_key_and_model_nothing_is_configured_and_nothing_is_degraded(
    tmp_path: Path, source: Path
) -> None:
    with serving(environment(tmp_path, {"notes": {"source": str(source)}})) as served:
        wait_until(lambda: health(served)["docs"]["notes"]["state"] == "fresh")
        answer = ask(served, "custom domain")
        told = health(served)
    assert "degraded" not in answer
    assert (told["status"], told["dense_search"], told["embeddings"]) == ("ok", False, None)
    assert "dense" not in told["docs"]["notes"]


def test_a_set_can_keep_its_documents_from_the_endpoint(
    endpoint: Endpoint, tmp_path: Path, source: Path
) -> None:
    sets = {"notes": {"source": str(source), "embedding_model": "none"}}
    with serving(environment(tmp_path, sets) | with_endpoint(endpoint)) as served:
        wait_until(lambda: health(served)["docs"]["notes"]["state"] == "fresh")
        assert "degraded" not in ask(served, "custom domain")
    assert endpoint.calls == 0


def test_vectors_that_are_still_being_made(
    endpoint: Endpoint, tmp_path: Path, source: Path
) -> None:
    endpoint.mode = "held"
    environ = environment(tmp_path, {"notes": {"source": str(source)}})
    with serving(environ | with_endpoint(endpoint)) as served:
        wait_until(lambda: endpoint.calls > 0)
        assert dense_of(served)["state"] == "building"
        assert_dropped_out(served, "no_vectors", "custom domain")
        endpoint.gate.set()
        wait_for_vectors(served)
        assert "degraded" not in ask(served, "custom domain")


def edit_notes(_data: Path, source: Path) -> dict[str, str]:
    (source / "disk.md").write_text("# Disks\n\nA disk survives.\n", encoding="utf-8")
    return {}


def restore_notes(source: Path) -> None:
    for name, text in NOTES.items():
        (source / name).write_text(text, encoding="utf-8")


def damage_vectors(data: Path, _source: Path) -> dict[str, str]:
    (file,) = data.rglob("chunks.npy")
    file.write_bytes(b"junk")
    # Without what is kept of passages, they must be asked for again.
    shutil.rmtree(data / "passages")
    return {}


@pytest.mark.parametrize(
    ("change", "reason", "again"),
    [
        (edit_notes, "corpus_mismatch", 1),
        (lambda _data, _source: {"EMBED_MODEL": "another"}, "model_mismatch", 3),
        (lambda _data, _source: {"EMBED_DIM": str(DIMENSION // 2)}, "dimension_mismatch", 3),
        (damage_vectors, "vectors_damaged", 3),
    ],
)
def test_vectors_of_something_else_are_refused_and_made_anew(
    endpoint: Endpoint,
    tmp_path: Path,
    copied: Path,
    change: Callable[[Path, Path], dict[str, str]],
    reason: str,
    again: int,
) -> None:
    environ = environment(tmp_path, {"notes": {"source": str(copied)}})
    environ |= with_endpoint(endpoint) | change(tmp_path / "data", copied)
    endpoint.mode = "held"
    with serving(environ) as served:
        wait_until(lambda: dense_of(served)["state"] == "building")
        assert_dropped_out(served, reason, "custom domain")
        endpoint.mode = "good"
        endpoint.gate.set()
        # This endpoint has no model of the dimension that is asked for.
        if reason != "dimension_mismatch":
            wait_for_vectors(served)
            # Text that has not changed is not paid for twice.
            assert sum(map(len, endpoint.texts)) == again
    restore_notes(copied)


def test_an_endpoint_that_is_gone(endpoint: Endpoint, tmp_path: Path, copied: Path) -> None:
    gone = {"AVALAI_BASE_URL": "http://127.0.0.1:9/v1"}
    with ready(endpoint, tmp_path, copied, **gone) as served:
        assert_dropped_out(served, "connection", "custom domain")


def test_all_calls_taken_by_others(endpoint: Endpoint, tmp_path: Path, copied: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "new.md").write_text("# New\n\nSomething else.\n", encoding="utf-8")
    sets = {"notes": {"source": str(copied)}, "other": {"source": str(other)}}
    endpoint.mode = "held"
    environ = environment(tmp_path, sets, EMBED_MAX_CALLS="1")
    with serving(environ | with_endpoint(endpoint)) as served:
        wait_until(lambda: endpoint.calls == 1)
        wait_for_vectors(served)
        assert_dropped_out(served, "busy", "custom domain")
        endpoint.gate.set()


class FakeTransformer:
    """Stands for the library's class, which is not installed: it knows one model."""

    prompts: ClassVar[dict[str, str]] = {}

    def __init__(self, name: str, **_options: bool) -> None:
        if name != "some/trigrams":
            raise OSError(f"{name} cannot be found")

    def encode(self, texts: list[str], **_options: object) -> npt.NDArray[np.float32]:
        return rows_of(texts)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the name of the optional one."""
    module = ModuleType("sentence_transformers")
    module.__dict__["SentenceTransformer"] = FakeTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


def local(tmp_path: Path, source: Path, name: str = "some/trigrams") -> dict[str, str]:
    model = {"embedding_model": f"local:{name}"}
    return environment(tmp_path, {"notes": {"source": str(source)} | model})


@pytest.mark.usefixtures("package")
def test_a_local_model_needs_no_key(tmp_path: Path, source: Path) -> None:
    with serving(local(tmp_path, source)) as served:
        wait_for_vectors(served)
        assert "degraded" not in ask(served, "databas sav nigh")
        assert dense_of(served)["model"] == "local:some/trigrams"


@pytest.mark.usefixtures("package")
def test_a_local_model_that_cannot_be_loaded(tmp_path: Path, source: Path) -> None:
    with serving(local(tmp_path, source, "/secret/place/mine")) as served:
        wait_until(lambda: dense_of(served)["reason"] == "model_unavailable")
        assert_dropped_out(served, "model_unavailable", "custom domain")
        message = dense_of(served)["message"]
        assert "local:mine cannot be loaded" in message
        assert "secret" not in message


def test_a_local_model_whose_extra_is_not_installed(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None is how Python marks a package that cannot be imported.
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with serving(local(tmp_path, source)) as served:
        wait_until(lambda: dense_of(served)["reason"] == "not_installed")
        assert_dropped_out(served, "not_installed", "custom domain")
        assert "liara-docs-mcp[sentence-transformers]" in dense_of(served)["message"]


def test_the_liara_tools_say_so_in_one_line(endpoint: Endpoint, tmp_path: Path) -> None:
    environ = {
        "PORT": "0",
        "DATA_DIR": str(tmp_path / "data"),
        "HOME": str(tmp_path),
        "SYNC_ON_START": "0",
        "EMBED_MODEL": "trigrams",
        "EMBED_DIM": str(DIMENSION),
    }
    calls = [
        ("search_docs", {"query": "disk"}),
        ("platform_docs", {"platform": "node", "needs": ["disk", "domain"]}),
        ("diagnose_log", {"log": "Error: listen EADDRINUSE: address already in use :::3000"}),
    ]
    others = [
        {"query": "another disk"},
        {"platform": "node", "needs": ["another disk", "another domain"]},
        {"log": "Error: Cannot find module 'wobble'"},
    ]
    with serving(environ | with_endpoint(endpoint)) as served:
        wait_for_vectors(served, "liara")
        for (tool, known), unknown in zip(calls, others, strict=True):
            endpoint.mode = "good"
            assert degraded_lines(served, tool, known) == []
            endpoint.mode = "401"
            (line,) = degraded_lines(served, tool, unknown)
            assert line.startswith("degraded: dense search took no part (status): ")


def degraded_lines(served: Served, tool: str, arguments: Mapping[str, Any]) -> list[str]:
    response = served.call("tools/call", {"name": tool, "arguments": arguments})
    text: str = response.json()["result"]["content"][0]["text"]
    return [line for line in text.splitlines() if line.startswith("degraded: ")]


def test_many_clients_at_once_never_wait_longer_than_the_deadline(
    notes: Served, endpoint: Endpoint
) -> None:
    endpoint.mode = "held"
    answers: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(ask(notes, f"custom domain {n} many")))
        for n in range(24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 24
    assert all(answer["degraded"] for answer in answers)
    # The first failures open the breaker: the rest is not even asked.
    assert endpoint.calls < 24
