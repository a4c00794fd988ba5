"""Vectors of length 1 without what they all share, and their cosines with a query."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.errors import DenseReason, DenseUnavailableError, SnapshotError
from app.index.arrays import load_array, save_array

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]

CENTRE_FROM = 500
"""From so many vectors on, what they share says something about the model, not the subject."""

SHARED_DIRECTIONS = 3
"""Taken out besides the mean ("all but the top", Mu and Viswanath 2018). Recall@5 of the vectors
alone, multilingual-e5-small on data/eval/official-tune.jsonl: none .750, mean only .738, one
.788, three .800, five .788, eight .781."""

_TINY = 1e-6


class CentredVectors:
    """One vector for each text; immutable."""

    def __init__(self, vectors: Float32Array, axes: Float32Array) -> None:
        """Take the parts as `build` makes them or `load` reads them."""
        self._vectors = vectors
        self._axes = axes

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self._vectors)

    @property
    def dimension(self) -> int:
        """The length of each vector."""
        return int(self._vectors.shape[1])

    @classmethod
    def build(cls, rows: Float32Array) -> "CentredVectors":
        """Take the model's vectors, one row a text.

        What all of them share is taken out: models of the e5 family put every text into a
        narrow cone, and the rest tells the texts apart.

        Raises:
            DenseUnavailableError: The rows tell nothing about the texts.
        """
        if not np.isfinite(rows).all():
            raise DenseUnavailableError(DenseReason.NOT_FINITE, "a passage vector holds NaN")
        if len(rows) > 1 and bool((np.abs(rows - rows[0]) < _TINY).all()):
            raise DenseUnavailableError(DenseReason.DEGENERATE, "all passages have the same vector")
        axes = _shared_axes(rows)
        return cls(_without(rows, axes), axes)

    def cosines(self, query: Float32Array) -> Float64Array:
        """Return the cosine of each vector with a query's of the same dimension."""
        wanted = _without(query[np.newaxis], self._axes)[0]
        # One thread: those of a matrix product wait for each other on a busy machine, 12 ms at
        # 4,000 chunks instead of 0.2. Vectors of int8 would take 5 to 10 times as long as these.
        cosines: Float64Array = np.vecdot(self._vectors, wanted).astype(np.float64)
        return cosines

    def save(self, folder: Path, name: str) -> None:
        """Write the vectors as `<name>.*` files into `folder`."""
        save_array(folder / f"{name}.npy", self._vectors)
        save_array(folder / f"{name}.axes.npy", self._axes)

    @classmethod
    def load(cls, folder: Path, name: str) -> "CentredVectors":
        """Map what `save` wrote.

        Raises:
            SnapshotError: A file is missing or damaged.
        """
        vectors = load_array(folder / f"{name}.npy", np.float32)
        axes = load_array(folder / f"{name}.axes.npy", np.float32)
        if vectors.ndim != 2 or axes.shape[1:] != vectors.shape[1:]:
            raise SnapshotError(f"{name}.npy has not the shape of vectors")
        return cls(vectors, axes)


def _shared_axes(rows: Float32Array) -> Float32Array:
    """Return what most vectors share: their mean, then the strongest directions around it.

    No row at all for few vectors, where that would be their subject.
    """
    if len(rows) < CENTRE_FROM:
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
