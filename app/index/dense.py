"""Vectors of the chunks and of the lay questions, and their cosine with a query's.

    <set>/vectors/<corpus>-<model>/   stamp.json, chunks.*, questions.*

They lie beside the snapshots, not in them: an index answers at once, and its vectors follow when
the model has made them. A stamp says which index, model and dimension they belong to.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from app.errors import DenseReason, DenseUnavailableError, SnapshotError
from app.index.arrays import load_array, load_json, save_array, save_json
from app.index.centred import CentredVectors, Float32Array, Float64Array

IntArray = npt.NDArray[np.int64]

FORMAT = 1

_PARTIAL = ".partial-"
_KEEP = 2


@dataclass(frozen=True, slots=True)
class VectorStamp:
    """What vectors belong to: `corpus` is the fingerprint of the index that they were made for."""

    format: int
    corpus: str
    model: str
    dimension: int
    chunks: int
    questions: int

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Read what `asdict` made.

        Raises:
            SnapshotError: It is of another format or lacks a field.
        """
        try:
            stamp = cls(**content)
        except TypeError as error:
            raise SnapshotError(f"stamp.json is damaged: {error}") from error
        if stamp.format != FORMAT:
            raise SnapshotError(f"format {stamp.format} is not {FORMAT}")
        return stamp

    def check(self, corpus: str, model: str, dimension: int | None) -> None:
        """Refuse vectors of something else.

        Raises:
            DenseUnavailableError: They belong to another model, dimension or index.
        """
        if self.model != model:
            raise DenseUnavailableError(
                DenseReason.MODEL_MISMATCH, "the vectors are of another model"
            )
        if dimension is not None and self.dimension != dimension:
            raise DenseUnavailableError(
                DenseReason.DIMENSION_MISMATCH,
                f"the vectors have dimension {self.dimension}, the model has {dimension}",
            )
        if self.corpus != corpus:
            raise DenseUnavailableError(
                DenseReason.CORPUS_MISMATCH, "the vectors are of another state of the documents"
            )


@dataclass(frozen=True, slots=True)
class DenseLeg:
    """What dense search adds to one query: vectors to compare, or why they take no part.

    Neither, where dense search is not configured.
    """

    vectors: "DenseIndex | None" = None
    query: Float32Array | None = None
    degraded: str | None = None

    def scores(self, pages: int) -> tuple[Float64Array, Float64Array] | None:
        """Return the cosine of each chunk, and of each page's nearest question, with the query.

        Pages without a question have 0; None when dense search takes no part.
        """
        if self.vectors is None or self.query is None:
            return None
        return self.vectors.cosines(self.query), self.vectors.page_cosines(self.query, pages)


class DenseIndex:
    """One vector for each chunk of an index and for each lay question; immutable."""

    def __init__(
        self,
        stamp: VectorStamp,
        chunks: CentredVectors,
        questions: CentredVectors,
        page_of_question: IntArray,
    ) -> None:
        """Take the parts as `build` makes them or `load` reads them."""
        self.stamp = stamp
        self._chunks = chunks
        self._questions = questions
        self._page_of_question = page_of_question

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self._chunks)

    @classmethod
    def build(
        cls,
        rows: Float32Array,
        *,
        corpus: str,
        model: str,
        questions: Float32Array | None = None,
        page_of_question: Sequence[int] = (),
    ) -> "DenseIndex":
        """Make the index of the model's vectors: a row a chunk, and a row a question.

        Raises:
            DenseUnavailableError: The rows tell nothing about the texts.
        """
        dimension = rows.shape[1]
        if questions is None:
            questions = np.empty((0, dimension), dtype=np.float32)
        stamp = VectorStamp(FORMAT, corpus, model, dimension, len(rows), len(questions))
        pages = np.asarray(page_of_question, dtype=np.int64)
        return cls(stamp, CentredVectors.build(rows), CentredVectors.build(questions), pages)

    def check_query(self, query: Float32Array) -> None:
        """Refuse a query's vector that cannot be compared.

        Raises:
            DenseUnavailableError: It has another dimension.
        """
        if query.shape != (self.stamp.dimension,):
            raise DenseUnavailableError(
                DenseReason.DIMENSION_MISMATCH,
                f"the query's vector has dimension {query.size},"
                f" the passages' have {self.stamp.dimension}",
            )

    def cosines(self, query: Float32Array) -> Float64Array:
        """Return the cosine of each chunk with a query's vector of the same dimension."""
        return self._chunks.cosines(query)

    def page_cosines(self, query: Float32Array, pages: int) -> Float64Array:
        """Return the cosine of each page's nearest question; at least 0."""
        nearest = np.zeros(pages)
        if len(self._questions):
            np.maximum.at(nearest, self._page_of_question, self._questions.cosines(query))
        return nearest

    def publish(self, set_dir: Path) -> Path:
        """Write the vectors below a set's folder, all or nothing; older ones are dropped.

        Raises:
            OSError: The folder cannot be written.
        """
        folder = set_dir / "vectors"
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / _name(self.stamp)
        partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder))
        try:
            self._chunks.save(partial, "chunks")
            self._questions.save(partial, "questions")
            save_array(partial / "questions.pages.npy", self._page_of_question)
            save_json(partial / "stamp.json", asdict(self.stamp))
            partial.chmod(0o755)
            shutil.rmtree(target, ignore_errors=True)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        _prune(folder, target)
        return target

    @classmethod
    def load(cls, folder: Path) -> "DenseIndex":
        """Map the vectors of one folder.

        Raises:
            SnapshotError: They are damaged or of another format.
        """
        stamp = VectorStamp.from_json(load_json(folder / "stamp.json"))
        chunks = CentredVectors.load(folder, "chunks")
        questions = CentredVectors.load(folder, "questions")
        pages = load_array(folder / "questions.pages.npy", np.int64)
        counts = (len(chunks), len(questions), len(pages))
        if counts != (stamp.chunks, stamp.questions, stamp.questions):
            raise SnapshotError("the vectors are not as many as their stamp says")
        if {chunks.dimension, questions.dimension} != {stamp.dimension}:
            raise SnapshotError("the vectors have not the dimension that their stamp says")
        return cls(stamp, chunks, questions, pages)


def find_vectors(
    *set_dirs: Path, corpus: str, model: str, dimension: int | None, chunks: int
) -> DenseIndex:
    """Return the vectors of one index and model.

    Raises:
        DenseUnavailableError: There are none; the reason tells what there is instead.
    """
    refusal = DenseUnavailableError(DenseReason.NO_VECTORS, "no vectors have been made yet")
    for folder in _folders(*set_dirs):
        try:
            found = DenseIndex.load(folder)
            found.stamp.check(corpus, model, dimension)
            if len(found) != chunks:
                raise SnapshotError(f"{len(found)} vectors for {chunks} chunks")
        except DenseUnavailableError as error:
            # The newest of the wrong ones explains best.
            refusal = error if refusal.reason is DenseReason.NO_VECTORS else refusal
        except SnapshotError as error:
            refusal = DenseUnavailableError(
                DenseReason.VECTORS_DAMAGED, f"the vectors cannot be read: {error}"
            )
        else:
            return found
    raise refusal


def _name(stamp: VectorStamp) -> str:
    model = hashlib.sha256(f"{stamp.model}\0{stamp.dimension}".encode()).hexdigest()
    return f"{stamp.corpus[:24]}-{model[:12]}"


def _folders(*set_dirs: Path) -> Iterator[Path]:
    """Yield the folders with vectors, the newest first."""
    found: list[tuple[float, Path]] = []
    for set_dir in set_dirs:
        try:
            found.extend(
                (folder.stat().st_mtime, folder)
                for folder in (set_dir / "vectors").iterdir()
                if folder.is_dir() and not folder.name.startswith(_PARTIAL)
            )
        except OSError:
            continue
    yield from (folder for _, folder in sorted(found, reverse=True))


def _prune(folder: Path, current: Path) -> None:
    """Drop what builds have left behind; who still has removed vectors mapped reads on."""
    others = [item for item in _folders(folder.parent) if item != current]
    for dead in [*others[_KEEP - 1 :], *folder.glob(f"{_PARTIAL}*")]:
        shutil.rmtree(dead, ignore_errors=True)
