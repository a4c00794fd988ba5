"""How long a query takes, part by part, and how our BM25 compares with rank_bm25 on equal tokens.

Runs over the official docs when LIARA_CORPUS names their folder, else over the starter corpus.
"""

import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rank_bm25 import BM25Okapi

from app.data_files import data_path
from app.evaluation.judged import read_judged
from app.index.analyzer import tokenize
from app.index.builder import field_text
from app.index.snapshot import SearchIndex
from app.ingestion.ingest import ingest
from app.liara.corpus import LIARA_SPEC
from app.retrieval.query import analyze
from app.retrieval.search import PARTS, search
from app.retrieval.synonyms import shipped_synonyms

_ROUNDS = 5


def main() -> None:
    """Print the table."""
    index = _index()
    queries = [question.query for question in read_judged(data_path("eval", "official-test.jsonl"))]
    print(f"{len(index)} chunks, {len(queries)} queries, median milliseconds a query")
    whole = _milliseconds(lambda query: search(index, query, top_k=5), queries)
    _row("whole query", whole, whole)
    synonyms = shipped_synonyms()
    _row(
        "analysis and expansion",
        _milliseconds(lambda query: analyze(query, index.vocabulary, synonyms), queries),
        whole,
    )
    for part in sorted(PARTS):
        without = frozenset({part})
        spent = _milliseconds(lambda q, w=without: search(index, q, top_k=5, without=w), queries)
        _row(f"without {part}", spent, whole)
    _race(index, queries)


def _index() -> SearchIndex:
    corpus = os.environ.get("LIARA_CORPUS")
    spec = (
        replace(LIARA_SPEC, source=corpus)
        if corpus
        else replace(LIARA_SPEC, source=str(data_path("starter")), include=("**/*.md",))
    )
    with tempfile.TemporaryDirectory() as scratch:
        return ingest(spec, Path(scratch))


def _race(index: SearchIndex, queries: Sequence[str]) -> None:
    texts = [index.chunk(number) for number in range(len(index))]
    oracle = BM25Okapi(
        [[*tokenize(chunk.text), *tokenize(field_text(chunk)) * 4] for chunk in texts]
    )
    ours = _milliseconds(lambda query: index.words.scores(Counter(tokenize(query))), queries)
    theirs = _milliseconds(lambda query: oracle.get_scores(tokenize(query)), queries[:20], rounds=1)
    print(f"word list, equal tokens: ours {ours:.3f} ms, rank_bm25 {theirs:.3f} ms,", end=" ")
    print(f"{theirs / ours:.0f} times faster")


def _milliseconds(
    work: Callable[[str], object], queries: Sequence[str], rounds: int = _ROUNDS
) -> float:
    times = []
    for _ in range(rounds):
        for query in queries:
            started = time.perf_counter()
            work(query)
            times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def _row(name: str, spent: float, whole: float) -> None:
    print(f"  {name:24s} {spent:7.3f}  {spent / whole:6.2f} of the whole")
