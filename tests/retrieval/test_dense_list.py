import numpy as np
import pytest

from app.index.dense import DenseIndex, DenseLeg
from app.index.snapshot import SearchIndex
from app.ingestion.ingest import ingest
from app.models import DocumentSetSpec, Layer
from app.retrieval.search import DENSE_CANDIDATES, PARTS, search

PAGES = 80


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    folder = tmp_path_factory.mktemp("docs")
    for number in range(PAGES):
        name = f"{'old' if number % 2 else 'new'}-{number:02}.md"
        (folder / name).write_text(f"# Page {number}\n\nAbout wombat{number}.\n", encoding="utf-8")
    layers = (Layer("old", include=("old-*",)), Layer("new", include=("new-*",)))
    asked = folder / "questions.jsonl"
    asked.write_text(
        '{"url": "new-40.md", "questions": ["what is forty"]}\n'
        '{"url": "old-41.md", "questions": ["and what is that"]}\n',
        encoding="utf-8",
    )
    spec = DocumentSetSpec(id="team", source=str(folder), layers=layers, questions=str(asked))
    return ingest(spec, tmp_path_factory.mktemp("checkout"))


def leg_towards(index: SearchIndex, *paths: str) -> DenseLeg:
    """A query whose cosine is highest with the first path, and less with each further one."""
    size = len(index)
    rows = np.eye(size, size + 1, dtype=np.float32)
    query = np.full(size + 1, 1e-4, dtype=np.float32)
    for place, path in enumerate(paths):
        query[index.chunks_of(path).start] = 1.0 - 0.1 * place
    query /= np.linalg.norm(query)
    vectors = DenseIndex.build(rows, corpus=index.manifest.fingerprint, model="test")
    return DenseLeg(vectors, query)


def found(index: SearchIndex, query: str, dense: DenseLeg, **more: object) -> list[str]:
    result = search(index, query, top_k=3, dense=dense, **more)  # type: ignore[arg-type]
    return [hit.chunk.path for hit in result.hits]


def test_a_chunk_that_shares_no_word_with_the_query_is_found_by_its_vector(
    index: SearchIndex,
) -> None:
    dense = leg_towards(index, "new-30.md", "old-07.md")
    assert found(index, "zebra", dense)[:2] == ["new-30.md", "old-07.md"]
    assert found(index, "zebra", DenseLeg()) == []


def test_words_and_vectors_add_up(index: SearchIndex) -> None:
    assert found(index, "wombat12", leg_towards(index, "new-30.md"))[:2] == [
        "new-12.md",
        "new-30.md",
    ]


def test_a_layer_has_its_own_nearest_chunks(index: SearchIndex) -> None:
    news = [f"new-{number:02}.md" for number in range(0, PAGES, 2)]
    dense = leg_towards(index, *news[:9], "old-07.md")
    assert found(index, "zebra", dense, layer="old")[0] == "old-07.md"


def test_a_page_is_found_by_the_vector_of_its_question(index: SearchIndex) -> None:
    size = len(index)
    rows = np.eye(size, size + 2, dtype=np.float32)
    questions = np.eye(size + 2, dtype=np.float32)[-2:]
    pages = [index.pages.index("new-40.md"), index.pages.index("old-41.md")]
    vectors = DenseIndex.build(
        rows, corpus="c", model="test", questions=questions, page_of_question=pages
    )
    query = 0.8 * questions[0] + 0.6 * questions[1]
    dense = DenseLeg(vectors, query)
    assert found(index, "zebra", dense) == ["new-40.md", "old-41.md"]
    assert found(index, "zebra", dense, layer="old") == ["old-41.md"]
    assert found(index, "zebra", dense, without=frozenset({"dense_questions"})) == []


def test_only_the_nearest_chunks_count(index: SearchIndex) -> None:
    dense = leg_towards(index, "new-30.md")
    result = search(index, "zebra", top_k=PAGES, dense=dense)
    assert 1 <= len(result.hits) <= DENSE_CANDIDATES


def test_the_list_can_be_left_out_and_is_shown_in_the_scores(index: SearchIndex) -> None:
    dense = leg_towards(index, "new-30.md")
    assert "dense" in PARTS
    assert found(index, "zebra", dense, without=frozenset({"dense"})) == []
    hit = search(index, "zebra", top_k=1, dense=dense).hits[0]
    assert hit.scores["dense"] > 0


def test_what_kept_the_vectors_out_is_passed_on(index: SearchIndex) -> None:
    result = search(index, "wombat12", top_k=1, dense=DenseLeg(degraded="the reason"))
    assert result.degraded == "the reason"
    assert result.hits
    assert search(index, "wombat12", top_k=1).degraded is None
