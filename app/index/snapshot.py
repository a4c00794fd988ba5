"""SearchIndex: everything that answers a query about one document set, in memory or on disk.

A snapshot is a folder of plain files: `manifest.json`, texts, the forward index and the ranked
lists. It is immutable; publication.py puts it in place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from app.errors import DocumentNotFoundError, SnapshotError
from app.index.analyzer import ANALYZER_VERSION
from app.index.arrays import TextStore, check_checksums, load_json, save_checksums, save_json
from app.index.bm25 import BM25
from app.index.forward import WordCounts
from app.index.products import ProductGroup, find_products
from app.index.questions import QuestionIndex
from app.index.vocabulary import Vocabulary
from app.models import Chunk, Skipped

FORMAT = 2
"""Version of the files of a snapshot; another one is rebuilt, never read."""

CHUNK_LISTS = ("words", "fields", "grams")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a snapshot holds and where it comes from.

    `recipe` identifies the settings that shape documents and chunks: two snapshots of one recipe
    can share parsed files. `built_at` and `rev_date` are ISO 8601. `layers` counts files.
    """

    format: int
    analyzer: int
    set_id: str
    fingerprint: str
    recipe: str
    origin: Literal["git", "file"]
    root: str
    source: str
    rev: str | None
    rev_date: str | None
    built_at: str
    files: int
    chunks: int
    layers: dict[str, int]
    languages: dict[str, int]
    skipped: tuple[Skipped, ...]
    starter: bool
    stat_fingerprint: str | None

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Read what `asdict` made.

        Raises:
            SnapshotError: It is of another format or lacks a field.
        """
        if not isinstance(content, dict):
            raise SnapshotError("manifest.json is not an object")
        # Terms of another analyzer would be searched with the words of this one.
        for name, ours in (("format", FORMAT), ("analyzer", ANALYZER_VERSION)):
            if content.get(name) != ours:
                raise SnapshotError(
                    f"{name} {content.get(name)} is not {ours}, the one this version reads"
                )
        try:
            skipped = tuple(Skipped(**item) for item in content.pop("skipped"))
            return cls(**content, skipped=skipped)
        except (KeyError, TypeError) as error:
            raise SnapshotError(f"manifest.json is not complete: {error}") from error


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document in the index, with `chunk_count` chunks from number `first_chunk` on.

    `digest` is the SHA-256 of the file as it was read. `number` is its place in the index.
    """

    number: int
    path: str
    url: str | None
    title: str
    lang: str
    layer: str | None
    digest: str
    first_chunk: int
    chunk_count: int

    @property
    def page(self) -> str:
        """The page that the document belongs to: its URL, else its path."""
        return self.url or self.path

    @property
    def chunk_numbers(self) -> range:
        """The numbers of the document's chunks, in file order."""
        return range(self.first_chunk, self.first_chunk + self.chunk_count)


class SearchIndex:
    """An immutable index over the chunks of one document set, numbered from 0."""

    def __init__(
        self,
        manifest: Manifest,
        documents: Sequence[DocumentEntry],
        chunk_rows: Mapping[str, list[Any]],
        sources: TextStore,
        texts: TextStore,
        body_counts: WordCounts,
        field_counts: WordCounts,
        lists: Mapping[str, BM25],
        questions: QuestionIndex,
    ) -> None:
        """Take the parts as builder.py makes them or `load` reads them."""
        self.manifest = manifest
        self.documents: dict[str, DocumentEntry] = {item.path: item for item in documents}
        self._entries = tuple(documents)
        self._rows = chunk_rows
        self._sources = sources
        self._texts = texts
        self.body_counts = body_counts
        self.field_counts = field_counts
        self.words = lists["words"]
        self.fields = lists["fields"]
        self.grams = lists["grams"]
        self.questions = questions
        self._page_numbers: dict[str, list[DocumentEntry]] = {}
        for entry in self._entries:
            self._page_numbers.setdefault(entry.page, []).append(entry)

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self._texts)

    def chunk(self, number: int) -> Chunk:
        """Return one chunk, by its number from 0."""
        entry = self._entries[self._rows["document"][number]]
        return Chunk(
            path=entry.path,
            url=entry.url,
            title=entry.title,
            heading_path=self._rows["heading_path"][number],
            anchor=self._rows["anchor"][number],
            start_line=self._rows["start_line"][number],
            end_line=self._rows["end_line"][number],
            section=self._rows["section"][number],
            part=self._rows["part"][number],
            text=self._texts[number],
        )

    def chunks_of(self, path: str) -> range:
        """Return the chunk numbers of one document.

        Raises:
            DocumentNotFoundError: No such document.
        """
        return self.document(path).chunk_numbers

    def document(self, path: str) -> DocumentEntry:
        """Return one document by its path.

        Raises:
            DocumentNotFoundError: No such document.
        """
        entry = self.documents.get(path)
        if entry is None:
            raise DocumentNotFoundError(
                f"The document set {self.manifest.set_id!r} has no file {path[:200]!r}."
            )
        return entry

    def source(self, path: str) -> str:
        """Return the whole source text of one document.

        Raises:
            DocumentNotFoundError: No such document.
        """
        return self._sources[self.document(path).number]

    @cached_property
    def pages(self) -> tuple[str, ...]:
        """All pages: URLs, or paths of documents without one, in file order."""
        return tuple(self._page_numbers)

    def documents_of_page(self, page: str) -> tuple[DocumentEntry, ...]:
        """Return the documents of a page, Persian ones first; none if there is no such page."""
        entries = self._page_numbers.get(page, [])
        return tuple(sorted(entries, key=lambda entry: entry.lang != "fa"))

    @cached_property
    def _chunk_ranges(self) -> list[list[range]]:
        return [
            [entry.chunk_numbers for entry in entries] for entries in self._page_numbers.values()
        ]

    def chunk_ranges_of_page(self, number: int) -> list[range]:
        """Return the chunk numbers of a page, a range for each of its documents."""
        return self._chunk_ranges[number]

    @cached_property
    def _document_of_chunk(self) -> npt.NDArray[np.int64]:
        return np.asarray(self._rows["document"], dtype=np.int64)

    @cached_property
    def page_of_chunk(self) -> npt.NDArray[np.int64]:
        """The number of each chunk's page, for counting chunks a page."""
        numbers = {page: number for number, page in enumerate(self._page_numbers)}
        by_document = np.array([numbers[entry.page] for entry in self._entries], dtype=np.int64)
        return by_document[self._document_of_chunk]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of the index as typed, without stems."""
        terms = self.words.terms
        return Vocabulary(
            {term: self.words.frequency(term) for term in terms if not term.startswith("~")}
        )

    @cached_property
    def products(self) -> tuple[ProductGroup, ...]:
        """Groups of twin products among the pages, over page numbers."""
        return find_products(self.pages)

    def layer_mask(self, layer: str) -> npt.NDArray[np.bool_]:
        """Return which chunks belong to a layer, by its exact name."""
        in_layer = np.array([entry.layer == layer for entry in self._entries], dtype=np.bool_)
        return in_layer[self._document_of_chunk]

    def save(self, folder: Path) -> None:
        """Write the snapshot's files into an existing, empty folder; the checksums come last."""
        save_json(folder / "documents.json", [asdict(entry) for entry in self._entries])
        save_json(folder / "chunks.json", dict(self._rows))
        self._sources.save(folder, "sources")
        self._texts.save(folder, "texts")
        self.body_counts.save(folder, "body")
        self.field_counts.save(folder, "field")
        for name in CHUNK_LISTS:
            ranked: BM25 = getattr(self, name)
            ranked.save(folder, name)
        self.questions.save(folder)
        save_json(folder / "manifest.json", asdict(self.manifest))
        save_checksums(folder)

    @classmethod
    def load(cls, folder: Path) -> "SearchIndex":
        """Read a snapshot, ready for its first query; arrays and texts are memory-mapped.

        Raises:
            SnapshotError: It is of another format, incomplete or damaged.
        """
        manifest = Manifest.from_json(load_json(folder / "manifest.json"))
        check_checksums(folder)
        texts = TextStore.load(folder, "texts")
        try:
            documents = [DocumentEntry(**item) for item in load_json(folder / "documents.json")]
        except TypeError as error:
            raise SnapshotError(f"documents.json is damaged: {error}") from error
        index = cls(
            manifest,
            documents,
            _load_chunk_rows(folder / "chunks.json"),
            TextStore.load(folder, "sources"),
            texts,
            WordCounts.load(folder, "body"),
            WordCounts.load(folder, "field"),
            {name: BM25.load(folder, name, len(texts)) for name in CHUNK_LISTS},
            QuestionIndex.load(folder),
        )
        _ = index.vocabulary, index.products, index.page_of_chunk
        return index


def _load_chunk_rows(file: Path) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = load_json(file)
    try:
        # Tuples of strings, unlike the lists of JSON, cost the garbage collector nothing.
        return rows | {"heading_path": [tuple(path) for path in rows["heading_path"]]}
    except (KeyError, TypeError) as error:
        raise SnapshotError(f"{file.name} is damaged: {error}") from error
