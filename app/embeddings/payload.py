"""The body of an /embeddings answer: JSON from outside, made rows or refused."""

import base64
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from app.errors import DenseReason, DenseUnavailableError


def parse_answer(body: bytes) -> npt.NDArray[np.float64]:
    """Return the vectors in the order of the texts, as they were sent.

    Embeddings may be lists of numbers or base64 of little-endian float32.

    Raises:
        DenseUnavailableError: The body is no such answer.
    """
    try:
        items = json.loads(body)["data"]
        vectors = [_numbers(item["embedding"]) for item in _in_order(items)]
        return np.stack(vectors) if vectors else np.empty((0, 0))
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError):
        raise DenseUnavailableError(
            DenseReason.MALFORMED, "the embeddings endpoint sent something that holds no vectors"
        ) from None


def _in_order(items: Any) -> list[dict[str, Any]]:
    if not isinstance(items, list):
        raise TypeError
    places = [item.get("index", place) for place, item in enumerate(items)]
    ordered: list[dict[str, Any]] = [{} for _ in items]
    for place, item in zip(places, items, strict=True):
        # A place that is named twice leaves another one without an embedding: a KeyError.
        ordered[range(len(items))[place]] = item
    return ordered


def _numbers(embedding: Any) -> npt.NDArray[np.float64]:
    if isinstance(embedding, str):
        raw = base64.b64decode(embedding, validate=True)
        return np.frombuffer(raw, dtype="<f4").astype(np.float64)
    if not isinstance(embedding, list):
        raise TypeError
    numbers = np.asarray(embedding, dtype=np.float64)
    if numbers.ndim != 1:
        raise ValueError
    return numbers
