"""Recall at k and mean reciprocal rank, with bootstrap confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CUTOFFS = (1, 3, 5, 8)
MRR_CUTOFF = 8
_RESAMPLES = 2_000
_SEED = 20_260

FloatArray = npt.NDArray[np.float64]
Rank = int | None


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


def rank_of_gold(pages: Sequence[str], gold: Sequence[str]) -> Rank:
    """Return the rank, from 1, of the first right page among distinct pages; None if missed."""
    distinct = dict.fromkeys(pages)
    return next((rank for rank, page in enumerate(distinct, 1) if page in gold), None)


def hits_at(ranks: Sequence[Rank], cutoff: int) -> FloatArray:
    """Return 1 for each question found within `cutoff`, else 0; their mean is recall@cutoff."""
    return np.array([rank is not None and rank <= cutoff for rank in ranks], dtype=np.float64)


def reciprocal_ranks(ranks: Sequence[Rank]) -> FloatArray:
    """Return 1/rank for each question, 0 beyond MRR_CUTOFF; their mean is the MRR."""
    return np.array(
        [1.0 / rank if rank is not None and rank <= MRR_CUTOFF else 0.0 for rank in ranks]
    )


def bootstrap(values: FloatArray) -> Interval:
    """Return the mean of `values` with its 95 % percentile interval (Efron 1979)."""
    if not values.size:
        return Interval(0.0, 0.0, 0.0)
    generator = np.random.default_rng(_SEED)
    samples = generator.integers(0, values.size, size=(_RESAMPLES, values.size))
    low, high = np.percentile(values[samples].mean(axis=1), [2.5, 97.5])
    return Interval(float(values.mean()), float(low), float(high))
