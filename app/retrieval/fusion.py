"""Several ranked lists made one: the weighted sum of normalised scores."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def fuse(scores: Mapping[str, FloatArray], weights: Mapping[str, float]) -> FloatArray:
    """Return the fused score of every chunk.

    Each list's scores are divided by their maximum, so that its best chunk gets the list's whole
    weight; a list that found nothing gives nothing.
    """
    fused: FloatArray | None = None
    for name, values in scores.items():
        best = values.max(initial=0.0)
        if best <= 0.0:
            continue
        part = values * (weights[name] / best)
        fused = part if fused is None else fused + part
    if fused is None:
        size = next((len(values) for values in scores.values()), 0)
        return np.zeros(size)
    return fused
