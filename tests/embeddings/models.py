"""A deterministic model for the tests: texts that share letters in a row have near vectors."""

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

DIMENSION = 64


def vector_of(text: str, dimension: int = DIMENSION) -> npt.NDArray[np.float32]:
    """Return the hashed trigrams of a text, with length 1."""
    padded = f"  {text.casefold()} "
    vector = np.zeros(dimension, dtype=np.float32)
    for start in range(len(padded) - 2):
        vector[zlib.crc32(padded[start : start + 3].encode()) % dimension] += 1
    return vector / np.linalg.norm(vector)


def rows_of(texts: Sequence[str], dimension: int = DIMENSION) -> npt.NDArray[np.float32]:
    """Return one row for each text."""
    return np.stack([vector_of(text, dimension) for text in texts])


class TrigramModel:
    """The model as app.embeddings.local takes one."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.calls.append(list(texts))
        return rows_of(texts)

    passages = queries
