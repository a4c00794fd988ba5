"""Floors under what retrieval finds, a little below what was measured."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.data_files import data_path
from app.evaluation.judged import read_judged
from app.evaluation.measures import hits_at, reciprocal_ranks
from app.evaluation.report import run
from app.index.snapshot import SearchIndex
from app.ingestion.ingest import ingest
from app.liara.corpus import LIARA_SPEC
from app.retrieval.search import search

TOP_K = 8


@pytest.fixture(scope="module")
def starter_index(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    spec = replace(LIARA_SPEC, source=str(data_path("starter")), include=("**/*.md",))
    return ingest(spec, tmp_path_factory.mktemp("checkout"), starter=True)


@pytest.fixture(scope="module")
def official_index(official_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    spec = replace(LIARA_SPEC, source=str(official_corpus))
    return ingest(spec, tmp_path_factory.mktemp("checkout"))


def pages_of(index: SearchIndex) -> Callable[[str, int], list[str]]:
    return lambda query, top_k: [hit.chunk.page for hit in search(index, query, top_k=top_k).hits]


def check(index: SearchIndex, file: Path, recall_at_5: float, mrr: float) -> None:
    outcomes = run(read_judged(file), pages_of(index), TOP_K)
    ranks = [outcome.rank for outcome in outcomes]
    assert hits_at(ranks, 5).mean() >= recall_at_5
    assert reciprocal_ranks(ranks).mean() >= mrr


def test_the_official_docs_are_searched_well(official_index: SearchIndex) -> None:
    check(official_index, data_path("eval", "official-test.jsonl"), 0.82, 0.72)


def test_questions_from_outside_are_answered_well(official_index: SearchIndex) -> None:
    questions = os.environ.get("EVAL_QUESTIONS")
    if not questions:
        pytest.skip("EVAL_QUESTIONS is not set: no further judged questions are at hand")
    check(official_index, Path(questions), 0.83, 0.76)


def test_every_official_page_is_indexed_or_skipped_with_a_reason(
    official_index: SearchIndex, official_corpus: Path
) -> None:
    manifest = official_index.manifest
    files = {
        file.relative_to(official_corpus).as_posix()
        for file in (official_corpus / "public" / "llms").rglob("*.md")
    }
    skipped = {item.path: item.reason for item in manifest.skipped}
    assert set(official_index.documents) | set(skipped) == files
    assert all(skipped.values())
    assert len(skipped) < 0.01 * len(files)
