import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from app.errors import DocumentNotFoundError, SnapshotError
from app.index.analyzer import ANALYZER_VERSION
from app.index.builder import IndexedDocument, build_index
from app.index.publication import (
    current_snapshot,
    newest_snapshot,
    prune,
    publish,
    unreadable_snapshots,
)
from app.index.snapshot import FORMAT, Manifest, SearchIndex
from app.models import Chunk, Skipped


def manifest(**changes: object) -> Manifest:
    plain = Manifest(
        format=FORMAT,
        analyzer=ANALYZER_VERSION,
        set_id="team",
        fingerprint="f1",
        recipe="r",
        origin="file",
        root="/docs",
        source="/docs",
        rev=None,
        rev_date=None,
        built_at="2026-01-01T00:00:00+00:00",
        files=2,
        chunks=3,
        layers={"guides": 1},
        languages={"en": 1, "fa": 1},
        skipped=(Skipped("big.md", "too large"),),
        starter=False,
        stat_fingerprint=None,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def document(path: str, texts: list[str], *, layer: str | None = None) -> IndexedDocument:
    chunks = tuple(
        Chunk(path, None, path.title(), ("Part",), "part", 1 + part, 1 + part, 0, part, text)
        for part, text in enumerate(texts)
    )
    return IndexedDocument(
        path, None, path.title(), "en", layer, f"digest of {texts}", "\n".join(texts), chunks
    )


DOCUMENTS = [
    document("disk.md", ["a disk keeps files", "mount a دیسک"], layer="guides"),
    document("port.md", ["the port is 3000"]),
]
QUESTIONS = {"disk.md": ["my uploads vanished"], "gone.md": ["never indexed"]}


@pytest.fixture
def index() -> SearchIndex:
    return build_index(manifest(), DOCUMENTS, questions=QUESTIONS)


def test_a_loaded_snapshot_is_the_saved_one(index: SearchIndex, tmp_path: Path) -> None:
    index.save(tmp_path)
    loaded = SearchIndex.load(tmp_path)
    assert asdict(loaded.manifest) == asdict(index.manifest)
    assert [loaded.chunk(number) for number in range(len(loaded))] == [
        chunk for item in DOCUMENTS for chunk in item.chunks
    ]
    assert loaded.documents == index.documents
    assert loaded.source("disk.md") == "a disk keeps files\nmount a دیسک"
    assert loaded.layer_mask("guides").tolist() == [True, True, False]
    assert loaded.page_of_chunk.tolist() == [0, 0, 1]
    assert loaded.words.scores({"دیسک": 1.0})[1] > 0
    assert loaded.questions.words.scores({"uploads": 1.0})[0] > 0
    assert len(loaded.questions) == 1


def test_no_file_of_a_snapshot_is_a_pickle(index: SearchIndex, tmp_path: Path) -> None:
    index.save(tmp_path)
    for file in tmp_path.iterdir():
        start = file.read_bytes()[:6]
        assert start == b"\x93NUMPY" or start[:1] in (b"{", b"[")


def test_an_unknown_document_is_named(index: SearchIndex) -> None:
    with pytest.raises(DocumentNotFoundError, match="nope"):
        index.source("nope.md")


@pytest.mark.parametrize("missing", ["manifest.json", "words.weights.npy", "chunks.json"])
def test_an_incomplete_snapshot_is_refused(
    index: SearchIndex, tmp_path: Path, missing: str
) -> None:
    index.save(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(SnapshotError):
        SearchIndex.load(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: content + b"x",
        lambda content: bytes(len(content)),
        lambda content: content[:-2] + bytes([content[-2] ^ 1]) + content[-1:],
        lambda content: b"[]",
        lambda content: b"{}",
        lambda content: b"[" * 100_000,
    ],
)
def test_a_snapshot_with_any_file_damaged_is_refused(
    index: SearchIndex, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    index.save(tmp_path)
    for file in sorted(tmp_path.iterdir()):
        content = file.read_bytes()
        if damage(content) == content:
            continue
        file.write_bytes(damage(content))
        with pytest.raises(SnapshotError):
            SearchIndex.load(tmp_path)
        file.write_bytes(content)
    assert SearchIndex.load(tmp_path).chunk(0) == index.chunk(0)


@pytest.mark.parametrize("version", ["format", "analyzer"])
def test_a_snapshot_of_another_version_is_refused(
    index: SearchIndex, tmp_path: Path, version: str
) -> None:
    index.save(tmp_path)
    content = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    content[version] += 1
    (tmp_path / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(SnapshotError, match=version):
        SearchIndex.load(tmp_path)


def test_an_incremental_build_equals_a_full_one(index: SearchIndex) -> None:
    changed = [
        replace(DOCUMENTS[0], unchanged=True),
        document("port.md", ["the port is 8080 now", "and another part"]),
        document("new.md", ["a new page on healthCheck"]),
    ]
    quick = build_index(manifest(), changed, index)
    full = build_index(manifest(), [replace(item, unchanged=False) for item in changed])
    for name in ("words", "fields", "grams"):
        for term in getattr(full, name).terms:
            quick_scores = getattr(quick, name).scores({term: 1.0})
            assert quick_scores == pytest.approx(getattr(full, name).scores({term: 1.0}))
        assert set(getattr(quick, name).terms) == set(getattr(full, name).terms)


def test_publishing_names_the_snapshot_as_current(index: SearchIndex, tmp_path: Path) -> None:
    folder = publish(index, tmp_path)
    assert current_snapshot(tmp_path) == folder
    assert newest_snapshot(tmp_path) == folder
    assert publish(index, tmp_path) == folder
    assert SearchIndex.load(folder).manifest.fingerprint == "f1"


def test_a_publication_that_stopped_half_way_leaves_the_last_good_one(
    index: SearchIndex, tmp_path: Path
) -> None:
    folder = publish(index, tmp_path)
    partial = tmp_path / "snapshots" / ".partial-x"
    partial.mkdir()
    (partial / "manifest.json").write_text("{", encoding="utf-8")
    (tmp_path / ".current-1").write_text("f2", encoding="utf-8")
    assert newest_snapshot(tmp_path) == folder
    prune(tmp_path)
    assert not partial.exists()
    assert newest_snapshot(tmp_path) == folder


def test_the_newest_revision_wins_over_the_newest_build(tmp_path: Path) -> None:
    disk, image = tmp_path / "disk", tmp_path / "image"
    old = manifest(
        fingerprint="old",
        rev_date="2026-02-01T00:00:00+00:00",
        built_at="2026-09-01T00:00:00+00:00",
    )
    new = manifest(
        fingerprint="new",
        rev_date="2026-06-01T00:00:00+00:00",
        built_at="2026-06-02T00:00:00+00:00",
    )
    publish(build_index(old, DOCUMENTS), disk)
    publish(build_index(new, DOCUMENTS), image)
    newest = newest_snapshot(disk, image)
    assert newest is not None
    assert newest.name == "new"


def test_a_current_snapshot_of_another_format_gives_way_to_a_readable_one(
    index: SearchIndex, tmp_path: Path
) -> None:
    good = publish(index, tmp_path)
    bad = publish(build_index(manifest(fingerprint="f2"), DOCUMENTS), tmp_path)
    (bad / "manifest.json").write_text('{"format": 0}', encoding="utf-8")
    assert newest_snapshot(tmp_path) == good
    assert list(unreadable_snapshots(tmp_path)) == ["f2"]


def test_a_current_file_cannot_point_outside(index: SearchIndex, tmp_path: Path) -> None:
    publish(index, tmp_path)
    (tmp_path / "current").write_text("../../etc", encoding="utf-8")
    assert current_snapshot(tmp_path) is None


def test_pruning_keeps_the_current_and_one_other(tmp_path: Path) -> None:
    for number in range(4):
        publish(build_index(manifest(fingerprint=f"f{number}"), DOCUMENTS), tmp_path)
    prune(tmp_path)
    left = sorted(folder.name for folder in (tmp_path / "snapshots").iterdir())
    assert len(left) == 2
    assert "f3" in left
