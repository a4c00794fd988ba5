"""Vectors of the chunks, and their cosine with a query's.

    <set>/vectors/<corpus>-<model>/   stamp.json, vectors.npy, axes.npy

They lie beside the snapshots, not in them: an index answers at once, and its vectors follow when
the model has made them. A stamp says which index, model and dimension they belong to.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from app.errors import DenseReason, DenseUnavailableError, SnapshotError
from app.index.arrays import load_array, load_json, save_array, save_json

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]

FORMAT = 1

CENTRE_FROM_CHUNKS = 500
"""From so many vectors on, what they share says something about the model, not the subject."""

SHARED_DIRECTIONS = 3
"""Taken out besides the mean ("all but the top", Mu and Viswanath 2018). Recall@5 of the vectors
alone, multilingual-e5-small on data/eval/official-tune.jsonl: none .750, mean only .738, one
.788, three .800, five .788, eight .781."""

_TINY = 1e-6
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

    def cosines(self) -> Float64Array | None:
        """Return the cosine of each chunk with the query, if dense search takes part."""
        if self.vectors is None or self.query is None:
            return None
        return self.vectors.cosines(self.query)


class DenseIndex:
    """One vector of length 1 for each chunk of an index; immutable."""

    def __init__(self, stamp: VectorStamp, vectors: Float32Array, axes: Float32Array) -> None:
        """Take the parts as `build` makes them or `load` reads them."""
        self.stamp = stamp
        self._vectors = vectors
        self._axes = axes

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self._vectors)

    @classmethod
    def build(cls, rows: Float32Array, *, corpus: str, model: str) -> "DenseIndex":
        """Make the index of the model's vectors, one row a chunk.

        What all vectors share is taken out: models of the e5 family put every text into a
        narrow cone, and the rest tells the texts apart.

        Raises:
            DenseUnavailableError: The rows tell nothing about the chunks.
        """
        if not np.isfinite(rows).all():
            raise DenseUnavailableError(DenseReason.NOT_FINITE, "a passage vector holds NaN")
        if len(rows) > 1 and bool((np.abs(rows - rows[0]) < _TINY).all()):
            raise DenseUnavailableError(DenseReason.DEGENERATE, "all passages have the same vector")
        axes = _shared_axes(rows)
        stamp = VectorStamp(FORMAT, corpus, model, rows.shape[1], len(rows))
        return cls(stamp, _without(rows, axes), axes)

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
        wanted = _without(query[np.newaxis], self._axes)[0]
        # One thread: those of a matrix product wait for each other on a busy machine, 12 ms at
        # 4,000 chunks instead of 0.2. Vectors of int8 would take 5 to 10 times as long as these.
        cosines: Float64Array = np.vecdot(self._vectors, wanted).astype(np.float64)
        return cosines

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
            save_array(partial / "vectors.npy", self._vectors)
            save_array(partial / "axes.npy", self._axes)
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
        vectors = load_array(folder / "vectors.npy", np.float32)
        axes = load_array(folder / "axes.npy", np.float32)
        if vectors.shape != (stamp.chunks, stamp.dimension) or axes.shape[1:] != vectors.shape[1:]:
            raise SnapshotError("the vectors have not the shape that their stamp says")
        return cls(stamp, vectors, axes)


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


def _shared_axes(rows: Float32Array) -> Float32Array:
    """Return what most vectors share: their mean, then the strongest directions around it.

    No row at all for a small corpus, where that would be its subject.
    """
    if len(rows) < CENTRE_FROM_CHUNKS:
        return np.empty((0, rows.shape[1]), dtype=np.float32)
    mean = rows.mean(axis=0, dtype=np.float64, keepdims=True)
    centred = rows - mean
    # The eigenvectors of the small square matrix are those of all vectors; largest last.
    _, directions = np.linalg.eigh(centred.T @ centred)
    strongest = directions[:, ::-1][:, :SHARED_DIRECTIONS].T
    axes: Float32Array = np.concatenate([mean, strongest]).astype(np.float32)
    return axes


def _without(rows: Float32Array, axes: Float32Array) -> Float32Array:
    """Return the rows without the shared part, with length 1."""
    if not len(axes):
        return np.ascontiguousarray(rows)
    left = rows - axes[0]
    left -= (left @ axes[1:].T) @ axes[1:]
    lengths = np.linalg.norm(left, axis=1, keepdims=True)
    units: Float32Array = (left / np.maximum(lengths, _TINY)).astype(np.float32)
    return units


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
