"""Models that run in this process, without a key: an optional extra, loaded when first used."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from app.embeddings.cache import QueryCache
from app.embeddings.encoder import FloatArray, check_variety, shown_model, unit_rows
from app.embeddings.queries import CachedQueries
from app.errors import DenseReason, DenseUnavailableError, OptionalDependencyError

MAX_WAITING = 32
"""Queries that wait for the model's one thread; the next ones go without dense search."""

RETRY_LOAD_SECONDS = 60.0

# Models of the e5 family expect these words; their configurations do not always say so. Those
# that follow instructions expect others.
_E5 = re.compile(r"(?<![a-z0-9])e5(?![a-z0-9])(?!.*instruct)", re.IGNORECASE)
_E5_PROMPTS = {"query": "query: ", "passage": "passage: "}

T = TypeVar("T")
Rows = npt.NDArray[np.float32]


class TextModel(Protocol):
    """A loaded model, called by one thread at a time."""

    def queries(self, texts: Sequence[str]) -> Rows:
        """Return one row for each query."""
        ...

    def passages(self, texts: Sequence[str]) -> Rows:
        """Return one row for each passage."""
        ...


class LocalEncoder:
    """A model of this process behind one thread, with a deadline for queries."""

    # One batch holds up a query that comes meanwhile: a second or two at most.
    batch_size = 8

    def __init__(
        self,
        name: str,
        load: Callable[[], TextModel],
        *,
        cache: QueryCache,
        timeout_seconds: float,
    ) -> None:
        """Name the model; `load` is called in the model's thread before its first use."""
        self._name = name
        self._load = load
        self._timeout_seconds = timeout_seconds
        self._queries = CachedQueries(self.model, cache)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embed")
        self._model: TextModel | None = None
        self._dimension: int | None = None
        self._waiting = 0
        self._failure: DenseUnavailableError | None = None
        self._retry_at = 0.0

    @property
    def model(self) -> str:
        """The name that vectors of this model are stamped with."""
        return f"local:{self._name}"

    @property
    def dimension(self) -> int | None:
        """The length of its vectors; None until the model has told."""
        return self._dimension

    async def prepare(self) -> None:
        """Load the model.

        Raises:
            DenseUnavailableError: It is not installed or not loadable.
        """
        await self._in_thread(self._loaded)

    async def encode_query(self, text: str) -> FloatArray:
        """Return the vector of one query.

        Raises:
            DenseUnavailableError: The model is not installed, not loadable, or too slow.
        """
        return await self._queries.vector(text, lambda: self._within_deadline(text))

    async def encode_passages(
        self, texts: Sequence[str], *, as_queries: bool = False
    ) -> FloatArray:
        """Return one row for each text of a batch.

        Raises:
            DenseUnavailableError: The model is not installed, not loadable, or broke.
        """
        rows = await self._in_thread(partial(self._encode, texts, queries=as_queries))
        check_variety(texts, rows)
        return rows

    async def aclose(self) -> None:
        """Let the thread end after what it is doing."""
        await self._queries.aclose()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _within_deadline(self, text: str) -> FloatArray:
        if self._waiting >= MAX_WAITING:
            raise DenseUnavailableError(
                DenseReason.BUSY, f"{MAX_WAITING} queries wait for the local model already"
            )
        try:
            async with asyncio.timeout(self._timeout_seconds):
                rows = await self._in_thread(partial(self._encode, [text], queries=True))
        except TimeoutError:
            raise DenseUnavailableError(
                DenseReason.TIMEOUT,
                f"the local model did not answer within {self._timeout_seconds:g} s",
            ) from None
        vector: FloatArray = rows[0]
        return vector

    async def _in_thread(self, work: Callable[[], T]) -> T:
        self._waiting += 1
        future = self._thread.submit(work)
        loop = asyncio.get_running_loop()
        # Counted until the thread is through with it: only what has not begun can be given up.
        future.add_done_callback(lambda _: _call_soon(loop, self._one_less))
        return await asyncio.wrap_future(future)

    def _one_less(self) -> None:
        self._waiting -= 1

    def _encode(self, texts: Sequence[str], *, queries: bool) -> FloatArray:
        model = self._loaded()
        try:
            rows = model.queries(texts) if queries else model.passages(texts)
        except Exception as error:
            # Whatever a model of someone else raises, search goes on without it.
            raise DenseUnavailableError(
                DenseReason.MODEL_UNAVAILABLE,
                f"{shown_model(self.model)} broke ({type(error).__name__})",
            ) from error
        units = unit_rows(np.asarray(rows), len(texts), self._dimension)
        self._dimension = units.shape[1]
        return units

    def _loaded(self) -> TextModel:
        if self._model is not None:
            return self._model
        if self._failure is not None and time.monotonic() < self._retry_at:
            raise self._failure
        try:
            self._model = self._load()
        except OptionalDependencyError as error:
            self._failure = DenseUnavailableError(DenseReason.NOT_INSTALLED, str(error))
        except Exception as error:  # noqa: BLE001
            self._failure = DenseUnavailableError(
                DenseReason.MODEL_UNAVAILABLE,
                f"{shown_model(self.model)} cannot be loaded ({type(error).__name__})",
            )
        else:
            return self._model
        self._retry_at = time.monotonic() + RETRY_LOAD_SECONDS
        raise self._failure


def load_sentence_transformer(name: str) -> TextModel:
    """Load a sentence-transformers model by its id or folder.

    Raises:
        OptionalDependencyError: The extra is not installed.
    """
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415
    except ImportError as error:
        raise OptionalDependencyError(
            f"{shown_model(f'local:{name}')} needs sentence-transformers:"
            " install liara-docs-mcp[sentence-transformers]"
        ) from error
    # Code that comes with a model is not run.
    return _SentenceTransformerModel(name, SentenceTransformer(name, trust_remote_code=False))


class _SentenceTransformerModel:
    """A SentenceTransformer with its own prompts, or those that its family expects."""

    def __init__(self, name: str, model: Any) -> None:
        self._model = model
        # The library fills in empty ones where a model names none.
        prompts = {key: text for key, text in (model.prompts or {}).items() if text}
        if not prompts and _E5.search(name):
            prompts = _E5_PROMPTS
        self._query_prompt = prompts.get("query", "")
        self._passage_prompt = prompts.get("document") or prompts.get("passage", "")

    def queries(self, texts: Sequence[str]) -> Rows:
        return self._encode(texts, self._query_prompt)

    def passages(self, texts: Sequence[str]) -> Rows:
        return self._encode(texts, self._passage_prompt)

    def _encode(self, texts: Sequence[str], prompt: str) -> Rows:
        # A lone surrogate has no bytes, and the tokeniser refuses the whole batch for it.
        clean = [text.encode(errors="replace").decode() for text in texts]
        # An empty prompt is given, too: without one the library takes the model's default prompt.
        rows = self._model.encode(
            clean, prompt=prompt, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(rows, dtype=np.float32)


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        # The loop has closed: nobody counts any more.
        return
