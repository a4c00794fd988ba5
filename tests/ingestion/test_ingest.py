import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import SourceUnavailableError
from app.index.publication import newest_snapshot
from app.index.snapshot import SearchIndex
from app.ingestion.ingest import build_snapshot, ingest
from app.models import DocumentSetSpec, Layer
from app.retrieval.search import search

PAGES = {
    "guides/disk.md": "# Disks\n\nA disk keeps files after a release.\n",
    "guides/port.md": "# Ports\n\nThe server listens on port 3000.\n",
    "notes/todo.md": "# To do\n\nWrite about backups.\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for name, text in PAGES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def spec(source: Path) -> DocumentSetSpec:
    layers = (Layer("guides", include=("guides/**",)),)
    return DocumentSetSpec(id="team", source=str(source), layers=layers)


def pages(index: SearchIndex, query: str) -> list[str]:
    return [hit.chunk.page for hit in search(index, query, top_k=3).hits]


def test_a_folder_becomes_a_published_index(spec: DocumentSetSpec, tmp_path: Path) -> None:
    index = build_snapshot(spec, tmp_path / "set")
    assert sorted(index.documents) == sorted(PAGES)
    assert pages(index, "keep files")[0] == "guides/disk.md"
    assert index.manifest.layers == {"guides": 2}
    assert newest_snapshot(tmp_path / "set") is not None


def test_nothing_changed_means_the_same_index(spec: DocumentSetSpec, tmp_path: Path) -> None:
    first = build_snapshot(spec, tmp_path / "set")
    assert build_snapshot(spec, tmp_path / "set", previous=first) is first


def test_changed_new_and_deleted_files_are_seen(
    spec: DocumentSetSpec, source: Path, tmp_path: Path
) -> None:
    first = build_snapshot(spec, tmp_path / "set")
    (source / "guides/port.md").write_text("# Ports\n\nIt is 8080 now.\n", encoding="utf-8")
    (source / "new.md").write_text("# Logs\n\nRead the logs.\n", encoding="utf-8")
    (source / "notes/todo.md").unlink()
    second = build_snapshot(spec, tmp_path / "set", previous=first)
    assert sorted(second.documents) == ["guides/disk.md", "guides/port.md", "new.md"]
    assert "8080" in second.source("guides/port.md")
    assert pages(second, "read the logs")[0] == "new.md"
    assert pages(second, "keep files")[0] == "guides/disk.md"


def test_an_unchanged_file_is_not_parsed_again(
    spec: DocumentSetSpec, source: Path, tmp_path: Path
) -> None:
    first = ingest(spec, tmp_path / "checkout")
    # A marker that no parser would make shows where the chunks come from.
    chunk = first.chunk(0)
    first._texts = type(first._texts).from_texts(["from the index", *["x"] * (len(first) - 1)])
    (source / "new.md").write_text("# New\n\nSomething new here.\n", encoding="utf-8")
    second = ingest(spec, tmp_path / "checkout", previous=first)
    assert chunk.path == "guides/disk.md"
    assert second.chunk(0).text == "from the index"


def test_another_chunk_size_parses_everything_again(spec: DocumentSetSpec, tmp_path: Path) -> None:
    first = ingest(spec, tmp_path / "checkout")
    second = ingest(replace(spec, chunk_max_chars=100), tmp_path / "checkout", previous=first)
    assert second is not first
    assert second.manifest.recipe != first.manifest.recipe


def test_a_file_that_cannot_be_used_is_named_and_the_rest_is_there(
    spec: DocumentSetSpec, source: Path, tmp_path: Path
) -> None:
    (source / "broken.md").write_bytes(b"\xff\xfe\x00 not text")
    index = ingest(spec, tmp_path / "checkout")
    assert [item.path for item in index.manifest.skipped] == ["broken.md"]
    assert index.manifest.skipped[0].reason
    assert len(index.documents) == len(PAGES)


def test_a_source_without_a_usable_file_keeps_what_is_published(
    spec: DocumentSetSpec, source: Path, tmp_path: Path
) -> None:
    build_snapshot(spec, tmp_path / "set")
    published = newest_snapshot(tmp_path / "set")
    for name in PAGES:
        (source / name).unlink()
    with pytest.raises(SourceUnavailableError, match="no file that can be used"):
        build_snapshot(spec, tmp_path / "set")
    assert newest_snapshot(tmp_path / "set") == published


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example.com/paas/",
        "https://docs.example.com.evil.com/",
        "https://docs.example.com/../x",
        "https://docs.example.com/a b",
        "https://docs.example.com/<script>",
        "javascript:alert(1)",
        "//docs.example.com/x",
    ],
)
def test_a_page_url_outside_of_the_allowlist_is_skipped(
    spec: DocumentSetSpec, source: Path, tmp_path: Path, url: str
) -> None:
    for name in ("guides/disk.md", "guides/port.md"):
        good = f"---\nurl: https://docs.example.com/{name[:-3]}/\n---\n{PAGES[name]}"
        (source / name).write_text(good, encoding="utf-8")
    (source / "notes/todo.md").write_text(
        f"---\nurl: {json.dumps(url)}\n---\n{PAGES['notes/todo.md']}", encoding="utf-8"
    )
    allowed = replace(spec, url_prefix="https://docs.example.com/")
    index = ingest(allowed, tmp_path / "checkout")
    assert sorted(index.documents) == ["guides/disk.md", "guides/port.md"]
    assert "notes/todo.md" in {item.path for item in index.manifest.skipped}


def test_lay_questions_find_their_page_and_are_never_its_text(
    spec: DocumentSetSpec, tmp_path: Path
) -> None:
    asked = {"url": "notes/todo.md", "questions": ["my zebra vanished overnight"]}
    file = tmp_path / "asked.jsonl"
    file.write_text(json.dumps(asked) + "\nnot json\n", encoding="utf-8")
    index = ingest(replace(spec, questions=str(file)), tmp_path / "checkout")
    assert pages(index, "zebra vanished")[0] == "notes/todo.md"
    assert all("zebra" not in index.chunk(number).text for number in range(len(index)))
    assert "zebra" not in index.source("notes/todo.md")
    assert "asked.jsonl:2" in {item.path for item in index.manifest.skipped}


def test_missing_questions_are_named_and_the_set_is_built(
    spec: DocumentSetSpec, tmp_path: Path
) -> None:
    index = ingest(replace(spec, questions=str(tmp_path / "none.jsonl")), tmp_path / "checkout")
    assert len(index.documents) == len(PAGES)
    assert "none.jsonl" in {item.path for item in index.manifest.skipped}
