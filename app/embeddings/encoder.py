"""The one protocol of what turns texts into vectors, and the checks on what comes back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from app.errors import DenseReason, DenseUnavailableError

FloatArray = npt.NDArray[np.float32]
"""One vector, or a matrix with one vector a row, each of length 1."""

_TINY = 1e-9


class Encoder(Protocol):
    """Turns queries and passages into vectors of one model.

    Both methods raise DenseUnavailableError, and nothing else, when they cannot.
    """

    @property
    def model(self) -> str:
        """The name that vectors of this model are stamped with."""
        ...

    @property
    def dimension(self) -> int | None:
        """The length of its vectors; None until the model has told."""
        ...

    @property
    def batch_size(self) -> int:
        """How many passages one call should carry."""
        ...

    async def prepare(self) -> None:
        """Do beforehand what the first query would have to wait for."""
        ...

    async def encode_query(self, text: str) -> FloatArray:
        """Return the vector of one query, within the encoder's deadline."""
        ...

    async def encode_passages(
        self, texts: Sequence[str], *, as_queries: bool = False
    ) -> FloatArray:
        """Return one row for each text of a batch; questions are encoded as queries are."""
        ...

    async def aclose(self) -> None:
        """Release connections and threads."""
        ...


def unit_rows(rows: npt.NDArray[np.floating], count: int, dimension: int | None) -> FloatArray:
    """Return the rows with length 1, once they are what was asked for.

    Raises:
        DenseUnavailableError: Too few or too many rows, a wrong dimension, NaN or a zero vector.
    """
    if rows.ndim != 2:
        raise DenseUnavailableError(DenseReason.MALFORMED, "the model gave no list of vectors")
    if len(rows) != count:
        raise DenseUnavailableError(
            DenseReason.WRONG_COUNT, f"the model gave {len(rows)} vectors for {count} texts"
        )
    if dimension is not None and rows.shape[1] != dimension:
        raise DenseUnavailableError(
            DenseReason.WRONG_DIMENSION,
            f"the model gave vectors of dimension {rows.shape[1]}, not {dimension}",
        )
    if not np.isfinite(rows).all():
        raise DenseUnavailableError(
            DenseReason.NOT_FINITE, "the model gave a vector with NaN or infinite values"
        )
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if (lengths < _TINY).any():
        raise DenseUnavailableError(DenseReason.ZERO_VECTOR, "the model gave a vector of zeros")
    units: FloatArray = (wide / lengths).astype(np.float32)
    return units


def check_variety(texts: Sequence[str], rows: FloatArray) -> None:
    """Refuse rows that are all the same for texts that are not.

    Raises:
        DenseUnavailableError: The vectors say nothing about the texts.
    """
    if len(rows) < 2 or len({letters_of(text) for text in texts}) < 2:
        return
    if bool((rows == rows[0]).all()):
        raise DenseUnavailableError(
            DenseReason.DEGENERATE, "the model gave the same vector for different texts"
        )


def shown_model(model: str) -> str:
    """Return the full name of a model for people: of a folder the last part, not where it lies."""
    folder = Path(model.removeprefix("local:"))
    is_folder = folder.is_absolute() or model.startswith("local:~")
    return f"local:{folder.name}" if is_folder else model


def letters_of(text: str) -> str:
    """Return the letters and digits only, in lower case: what models may all that differ in."""
    return "".join(char for char in text.casefold() if char.isalnum())
