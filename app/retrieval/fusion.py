"""Several ranked lists made one: the weighted sum of normalised scores."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def fuse(scores: Mapping[str, FloatArray], weights: Mapping[str, float], size: int) -> FloatArray:
    """Return the fused score of each of `size` chunks.

    Each list's scores are divided by their maximum, so that its best chunk gets the list's whole
    weight; a list that found nothing gives nothing.
    """
    fused = np.zeros(size)
    for name, values in scores.items():
        best = values.max(initial=0.0)
        if best > 0.0:
            fused += values * (weights[name] / best)
    return fused
