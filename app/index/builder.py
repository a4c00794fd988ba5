"""From parsed documents to a SearchIndex; what did not change is taken from the previous one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt

from app.index.analyzer import grams, term_texts
from app.index.arrays import TextStore
from app.index.bm25 import BM25
from app.index.forward import TermCounts, WordCounter, WordCounts, add_counts
from app.index.questions import QuestionIndex
from app.index.snapshot import DocumentEntry, Manifest, SearchIndex
from app.models import Chunk

BUILDER_VERSION = 2
"""Part of a snapshot's fingerprint: raised whenever the ranked lists change."""

FIELD_WEIGHT = 4
"""How often title, headings and URL count inside the word list, beside the body.

From 1 to 8 the tuning halves of data/eval hardly tell: recall@5 within 0.006, MRR@8 within 0.004.
"""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document on its way into an index, with its chunks in file order.

    `unchanged` says that the previous index holds the same document: its word counts are reused.
    """

    path: str
    url: str | None
    title: str
    lang: str
    layer: str | None
    digest: str
    text: str
    chunks: tuple[Chunk, ...]
    unchanged: bool = False


def build_index(
    manifest: Manifest,
    documents: Sequence[IndexedDocument],
    previous: SearchIndex | None = None,
    questions: Mapping[str, Sequence[str]] | None = None,
) -> SearchIndex:
    """Index documents in the given order; chunk numbers follow from it.

    `questions` are lay questions by page (URL, else path); those of unknown pages are left out.
    """
    body_counts, field_counts = _count_words(documents, previous)
    entries, first = [], 0
    for number, item in enumerate(documents):
        entries.append(
            DocumentEntry(
                number, item.path, item.url, item.title, item.lang, item.layer, item.digest,
                first, len(item.chunks),
            )
        )  # fmt: skip
        first += len(item.chunks)
    chunks = [(number, chunk) for number, item in enumerate(documents) for chunk in item.chunks]
    return SearchIndex(
        manifest,
        entries,
        _chunk_rows(chunks),
        TextStore.from_texts([item.text for item in documents]),
        TextStore.from_texts([chunk.text for _, chunk in chunks]),
        body_counts,
        field_counts,
        _rank_lists(body_counts, field_counts),
        QuestionIndex.build(list(dict.fromkeys(item.page for item in entries)), questions or {}),
    )


def field_text(chunk: Chunk) -> str:
    """Return what the field list holds for a chunk: title, headings and the words of its URL."""
    location = urlsplit(chunk.url).path if chunk.url else chunk.path.removesuffix(".md")
    words = unquote(location).replace("/", " ")
    return "\n".join((chunk.title, *chunk.heading_path, words))


def _count_words(
    documents: Sequence[IndexedDocument], previous: SearchIndex | None
) -> tuple[WordCounts, WordCounts]:
    body, fields = WordCounter(), WordCounter()
    for item in documents:
        if item.unchanged and previous is not None:
            numbers = previous.chunks_of(item.path)
            body.reuse(previous.body_counts, numbers)
            fields.reuse(previous.field_counts, numbers)
            continue
        for chunk in item.chunks:
            body.add(chunk.text)
            fields.add(field_text(chunk))
    return body.finish(), fields.finish()


def _chunk_rows(chunks: Sequence[tuple[int, Chunk]]) -> dict[str, list[Any]]:
    return {
        "document": [number for number, _ in chunks],
        "heading_path": [chunk.heading_path for _, chunk in chunks],
        "anchor": [chunk.anchor for _, chunk in chunks],
        "start_line": [chunk.start_line for _, chunk in chunks],
        "end_line": [chunk.end_line for _, chunk in chunks],
        "section": [chunk.section for _, chunk in chunks],
        "part": [chunk.part for _, chunk in chunks],
    }


def _rank_lists(body: WordCounts, fields: WordCounts) -> dict[str, BM25]:
    size = len(body)
    field_terms, field_counts = fields.count_terms(term_texts)
    body_terms, body_counts = body.count_terms(term_texts)
    gram_terms, gram_counts = body.count_terms(grams)
    all_terms, shared = _merge_terms(body_terms, field_terms)
    weighted = TermCounts(
        field_counts.texts, shared[field_counts.rows], field_counts.counts * FIELD_WEIGHT
    )
    word_counts = add_counts(body_counts, weighted, len(all_terms))
    return {
        "words": BM25.from_counts(all_terms, word_counts, size),
        "fields": BM25.from_counts(field_terms, field_counts, size),
        "grams": BM25.from_counts(gram_terms, gram_counts, size),
    }


def _merge_terms(
    left: Sequence[str], right: Sequence[str]
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Append the new terms of `right` to `left`; the array gives each right term's new row."""
    rows = {term: row for row, term in enumerate(left)}
    moved = [rows.setdefault(term, len(rows)) for term in right]
    return list(rows), np.array(moved, dtype=np.int32)
