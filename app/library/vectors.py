"""The vectors of the document sets: found on disk, made in the background, used for a query.

An index answers by its words at once; its vectors follow. While they do not fit the index that
answers, dense search says why it does not take part.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from time import monotonic

from filelock import FileLock, Timeout

from app.embeddings.cache import PassageCache
from app.embeddings.encoder import Encoder, shown_model
from app.embeddings.passages import embed_passages
from app.embeddings.registry import Encoders
from app.errors import DenseReason, DenseUnavailableError
from app.index.dense import DenseIndex, DenseLeg, find_vectors
from app.index.snapshot import SearchIndex
from app.ingestion.questions_file import read_questions
from app.library.document_set import DocumentSet
from app.models import Chunk, Progress

logger = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 30.0
LAST_RETRY_SECONDS = 3600.0
OTHER_PROCESS_SECONDS = 2.0
"""How long a set is left alone whose vectors another process is making."""

MAX_PASSAGE_CHARS = 6000
"""Models read less than this; endpoints refuse much longer texts."""

MAX_QUERY_CHARS = 2000


class VectorState(StrEnum):
    """Whether dense search takes part in the answers of a set."""

    READY = "ready"
    BUILDING = "building"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class VectorStatus:
    """The dense leg of one set; sets without a model have none.

    `reason` and `message` say why it takes no part; when it is ready, why it last did not, if
    that is how the last query went.
    """

    model: str
    state: VectorState
    reason: DenseReason | None
    message: str | None
    done: int
    total: int


@dataclass(slots=True)
class _SetVectors:
    """What is known of one set's vectors."""

    wanted: tuple[str, str] | None = None
    dense: DenseIndex | None = None
    refusal: DenseUnavailableError | None = None
    build_failure: DenseUnavailableError | None = None
    last_dropout: DenseUnavailableError | None = None
    task: "asyncio.Task[None] | None" = None
    failures: int = 0
    retry_at: float = 0.0
    done: int = 0
    total: int = 0
    listeners: list[Progress] = field(default_factory=list)

    @property
    def is_building(self) -> bool:
        return self.task is not None and not self.task.done()


class LibraryVectors:
    """The dense legs of all sets of a library. Builds and queries belong to one event loop."""

    def __init__(
        self,
        encoders: Encoders,
        *,
        data_dir: Path,
        image_dir: Path | None = None,
        default_model: Callable[[], str | None] = lambda: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take the encoders; `default_model` is what the config names for sets that name none."""
        self.encoders = encoders
        self.dropouts: Counter[tuple[str, DenseReason]] = Counter()
        self.queries: Counter[str] = Counter()
        self._passages_dir = data_dir / "passages"
        self._image_dir = image_dir
        self._default_model = default_model
        self._clock = clock
        self._sets: dict[str, _SetVectors] = {}
        self._prepared: dict[str, asyncio.Task[None]] = {}

    def model_of(self, served: DocumentSet) -> str | None:
        """Return the full name of the model of a set; None where dense search is not wanted."""
        return self.encoders.resolve(served.options.embedding_model or self._default_model())

    def look(self, served: DocumentSet) -> bool:
        """Take the vectors on disk that fit the index of a set; return whether some are missing.

        Synchronous; looks at the disk only when index or model are not those of the last look,
        or when the vectors were missing then.
        """
        model, index = self.model_of(served), served.index
        known = self._sets.setdefault(served.spec.id, _SetVectors())
        if model is None or index is None or not len(index):
            known.wanted, known.dense, known.refusal = None, None, None
            return False
        wanted = (index.manifest.fingerprint, model)
        if known.wanted != wanted:
            known.wanted, known.build_failure = wanted, None
            known.failures, known.retry_at = 0, 0.0
        elif known.dense is not None:
            return False
        try:
            known.dense, known.refusal = self._find(served, index, model), None
        except DenseUnavailableError as error:
            known.dense, known.refusal = None, error
        return known.dense is None

    async def keep_up(self, served: DocumentSet) -> None:
        """Take what is on disk, or start to make it unless it is too early to try again."""
        known = self._sets.setdefault(served.spec.id, _SetVectors())
        # A set that is being rebuilt gets vectors of what comes out of that.
        if known.is_building or served.building:
            return
        if await asyncio.to_thread(self.look, served):
            self._start(served, known)
        elif known.dense is not None:
            self._prepare(known.dense.stamp.model)

    async def catch_up(self, served: DocumentSet, progress: Progress | None = None) -> None:
        """Make the vectors of a set's index now, or wait for the task that does."""
        known = self._sets.setdefault(served.spec.id, _SetVectors())
        if not known.is_building:
            if not await asyncio.to_thread(self.look, served):
                return
            known.retry_at = 0.0
        if progress is not None:
            known.listeners.append(progress)
        self._start(served, known)
        if known.task is not None:
            # Shielded: who gives up waiting does not stop it for the others.
            await asyncio.shield(known.task)

    async def leg(self, served: DocumentSet, index: SearchIndex, query: str) -> DenseLeg:
        """Return what dense search adds to a query: the vectors, or why there are none.

        Takes as long as the encoder's deadline at most, and never fails.
        """
        model = self.model_of(served)
        if model is None or not query.strip():
            return DenseLeg()
        set_id = served.spec.id
        known = self._sets.setdefault(set_id, _SetVectors())
        self.queries[set_id] += 1
        try:
            dense = self._fitting(known, index, model)
            vector = await self.encoders.encoder(model).encode_query(query[:MAX_QUERY_CHARS])
            dense.check_query(vector)
        except DenseUnavailableError as error:
            self._note_dropout(set_id, known, error)
            return DenseLeg(degraded=f"dense search took no part ({error.reason}): {error}")
        if known.last_dropout is not None:
            logger.info("set %s: dense search takes part again", set_id)
            known.last_dropout = None
        return DenseLeg(dense, vector)

    def status(self, served: DocumentSet) -> VectorStatus | None:
        """Describe the dense leg of a set; None where none is wanted."""
        model = self.model_of(served)
        if model is None:
            return None
        known = self._sets.get(served.spec.id, _SetVectors())
        why = known.build_failure or known.refusal or known.last_dropout
        if why is None and known.dense is None:
            why = _none_yet()
        if known.is_building:
            state = VectorState.BUILDING
        else:
            state = VectorState.READY if known.dense is not None else VectorState.UNAVAILABLE
        return VectorStatus(
            shown_model(model),
            state,
            why.reason if why else None,
            str(why) if why else None,
            known.done,
            known.total,
        )

    @property
    def is_wanted(self) -> bool:
        """Whether some set has a model."""
        return any(known.wanted is not None for known in self._sets.values())

    async def prepare(self, served: DocumentSet) -> None:
        """Load the model of a set, so that its first query need not wait."""
        model = self.model_of(served)
        if model is not None:
            await asyncio.wait({self._prepare(model)})

    def forget(self, set_id: str) -> None:
        """Drop a set that is gone."""
        known = self._sets.pop(set_id, None)
        if known is not None and known.task is not None:
            known.task.cancel()

    async def aclose(self) -> None:
        """Stop builds, whose batches are kept, and close the encoders."""
        tasks = [known.task for known in self._sets.values() if known.task is not None]
        tasks.extend(self._prepared.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.encoders.aclose()

    def _start(self, served: DocumentSet, known: _SetVectors) -> None:
        if not known.is_building and self._clock() >= known.retry_at:
            known.task = asyncio.create_task(
                self._build(served, known), name=f"vectors-{served.spec.id}"
            )

    def _prepare(self, model: str) -> "asyncio.Task[None]":
        """Load a model once; what comes of it, the first query tells."""
        task = self._prepared.get(model)
        if task is None:
            encoder = self.encoders.encoder(model)
            task = self._prepared[model] = asyncio.create_task(_prepared(encoder))
        return task

    def _fitting(self, known: _SetVectors, index: SearchIndex, model: str) -> DenseIndex:
        """Return the loaded vectors, if they are of this very index and model."""
        self.encoders.check_configured(model)
        dense = known.dense
        if dense is None:
            raise known.build_failure or known.refusal or _none_yet()
        dense.stamp.check(index.manifest.fingerprint, model, self.encoders.encoder(model).dimension)
        return dense

    def _find(self, served: DocumentSet, index: SearchIndex, model: str) -> DenseIndex:
        set_dirs = [served.set_dir]
        if self._image_dir is not None:
            set_dirs.append(self._image_dir / "sets" / served.spec.id)
        return find_vectors(
            *set_dirs,
            corpus=index.manifest.fingerprint,
            model=model,
            dimension=self.encoders.encoder(model).dimension,
            chunks=len(index),
        )

    async def _build(self, served: DocumentSet, known: _SetVectors) -> None:
        model, index, set_id = self.model_of(served), served.index, served.spec.id
        if model is None or index is None:
            return
        started = self._clock()
        try:
            self.encoders.check_configured(model)
            with _only_process(served.set_dir):
                # Another process may have made them meanwhile.
                if await asyncio.to_thread(self.look, served):
                    known.dense = await self._make(served, known, index, model)
                    known.refusal = None
        except Timeout:
            known.retry_at = self._clock() + OTHER_PROCESS_SECONDS
        except DenseUnavailableError as error:
            self._failed(set_id, known, error)
        except Exception as error:
            # A bug here must not end the upkeep of the other sets.
            logger.exception("set %s: making vectors broke", set_id)
            broke = f"making the vectors broke ({type(error).__name__})"
            self._failed(set_id, known, DenseUnavailableError(DenseReason.NO_VECTORS, broke))
        else:
            known.failures, known.build_failure = 0, None
            seconds = self._clock() - started
            logger.info("set %s: vectors of %s ready after %.1f s", set_id, model, seconds)
        finally:
            known.listeners.clear()

    async def _make(
        self, served: DocumentSet, known: _SetVectors, index: SearchIndex, model: str
    ) -> DenseIndex:
        def report(done: int, total: int) -> None:
            known.done, known.total = done, total
            for listener in tuple(known.listeners):
                listener("embed", done, total)

        texts = await asyncio.to_thread(_texts, served, index)
        encoder, total = self.encoders.encoder(model), len(texts.passages) + len(texts.questions)
        rows = await embed_passages(
            encoder,
            texts.passages,
            PassageCache(self._passages_dir, model),
            lambda done, _: report(done, total),
        )
        questions = None
        if texts.questions:
            questions = await embed_passages(
                encoder,
                texts.questions,
                # A model may read a question otherwise than a passage of the same words.
                PassageCache(self._passages_dir, f"{model} questions"),
                lambda done, _: report(len(texts.passages) + done, total),
                as_queries=True,
            )
        build = partial(
            DenseIndex.build,
            rows,
            corpus=index.manifest.fingerprint,
            model=model,
            questions=questions,
            page_of_question=texts.page_of_question,
        )
        dense = await asyncio.to_thread(build)
        try:
            await asyncio.to_thread(dense.publish, served.set_dir)
        except OSError as error:
            logger.warning("set %s: vectors are kept in memory only: %s", served.spec.id, error)
        return dense

    def _failed(self, set_id: str, known: _SetVectors, error: DenseUnavailableError) -> None:
        known.build_failure = error
        known.failures += 1
        wait = min(FIRST_RETRY_SECONDS * 2 ** min(known.failures - 1, 10), LAST_RETRY_SECONDS)
        known.retry_at = self._clock() + wait
        self.dropouts[set_id, error.reason] += 1
        logger.warning("set %s: no vectors (%s): %s", set_id, error.reason, error)

    def _note_dropout(self, set_id: str, known: _SetVectors, error: DenseUnavailableError) -> None:
        self.dropouts[set_id, error.reason] += 1
        if known.last_dropout is None or known.last_dropout.reason is not error.reason:
            logger.warning(
                "set %s: dense search takes no part (%s): %s", set_id, error.reason, error
            )
        known.last_dropout = error


def passage_text(chunk: Chunk) -> str:
    """Return what the model reads of a chunk: where it stands, and its text."""
    headings = [heading for heading in chunk.heading_path if heading != chunk.title]
    return f"{' › '.join((chunk.title, *headings))}\n{chunk.text}"[:MAX_PASSAGE_CHARS]


@dataclass(frozen=True, slots=True)
class _Texts:
    """What is encoded of a set: its chunks, and the lay questions with their pages' numbers."""

    passages: list[str]
    questions: list[str]
    page_of_question: list[int]


def _texts(served: DocumentSet, index: SearchIndex) -> _Texts:
    texts = _Texts([passage_text(index.chunk(number)) for number in range(len(index))], [], [])
    if served.spec.questions and len(index.questions):
        asked, _ = read_questions(Path(served.spec.questions))
        for number, page in enumerate(index.pages):
            questions = asked.get(page, ())
            texts.questions.extend(questions)
            texts.page_of_question.extend([number] * len(questions))
    return texts


async def _prepared(encoder: Encoder) -> None:
    with suppress(DenseUnavailableError):
        await encoder.prepare()


def _none_yet() -> DenseUnavailableError:
    return DenseUnavailableError(DenseReason.NO_VECTORS, "no vectors have been made yet")


@contextmanager
def _only_process(set_dir: Path) -> Iterator[None]:
    """Hold the lock of a set's vectors; a folder that cannot be written has none.

    Raises:
        Timeout: Another process holds it.
    """
    lock = FileLock(set_dir / "vectors.lock", timeout=0)
    # Timeout is an OSError, too.
    try:
        set_dir.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise
    except OSError as error:
        logger.info("no lock for the vectors: %s", error)
    try:
        yield
    finally:
        lock.release()
