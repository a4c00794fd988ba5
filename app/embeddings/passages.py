"""Vectors of many passages: what is known from before, then the rest in batches."""

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from app.embeddings.cache import PassageCache
from app.embeddings.encoder import Encoder, FloatArray

OnProgress = Callable[[int, int], None]


async def embed_passages(
    encoder: Encoder,
    texts: Sequence[str],
    cache: PassageCache,
    on_progress: OnProgress,
    *,
    as_queries: bool = False,
) -> FloatArray:
    """Return one row for each text; each batch is kept as soon as it is there.

    Equal texts are asked for once. Questions are encoded as queries are. `on_progress` is told
    how many of the texts are done.

    Raises:
        DenseUnavailableError: A batch failed; the ones before are kept for the next try.
    """
    unique = list(dict.fromkeys(texts))
    known = await asyncio.to_thread(cache.known, unique, encoder.dimension)
    if encoder.dimension is None and len(known) < len(unique):
        # The first batch tells the dimension; what is kept of another one does not fit.
        first = next(place for place in range(len(unique)) if place not in known)
        rows = await encoder.encode_passages([unique[first]], as_queries=as_queries)
        await asyncio.to_thread(cache.keep, [unique[first]], rows)
        known = {place: row for place, row in known.items() if len(row) == rows.shape[1]}
        known[first] = rows[0]
    missing = [place for place in range(len(unique)) if place not in known]
    done = len(unique) - len(missing)
    on_progress(done, len(unique))
    for start in range(0, len(missing), encoder.batch_size):
        places = missing[start : start + encoder.batch_size]
        batch = [unique[place] for place in places]
        rows = await encoder.encode_passages(batch, as_queries=as_queries)
        await asyncio.to_thread(cache.keep, batch, rows)
        known |= dict(zip(places, rows, strict=True))
        done += len(places)
        on_progress(done, len(unique))
    await asyncio.to_thread(cache.prune)
    place_of = {text: place for place, text in enumerate(unique)}
    return np.stack([known[place_of[text]] for text in texts])
