"""Vectors that need not be asked for again: of queries in memory, of passages on disk."""

import hashlib
import logging
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.embeddings.encoder import FloatArray

logger = logging.getLogger(__name__)

MAX_QUERY_BYTES = 16 * 1024 * 1024
"""Of all query vectors: about 2,600 of dimension 1536."""

QUERY_TTL_SECONDS = 24 * 3600

# What an entry costs beside its vector and its text: the key, the node, the array object.
_ENTRY_BYTES = 256
_UNUSED_DAYS = 90
_READ_AT_ONCE = 500


@dataclass(slots=True)
class CacheCounts:
    """How often the cache had what was asked for."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    vector: FloatArray
    size: int
    expires_at: float


class QueryCache:
    """The vectors of the queries asked last, bounded in bytes and in age."""

    def __init__(
        self,
        *,
        max_bytes: int = MAX_QUERY_BYTES,
        ttl_seconds: float = QUERY_TTL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start empty."""
        self._max_bytes = max_bytes
        self._ttl_seconds = ttl_seconds
        self._clock = clock
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self.bytes = 0
        self.counts = CacheCounts()

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self._entries)

    def get(self, model: str, text: str) -> FloatArray | None:
        """Return the vector of a query, if it is known and not too old."""
        key = (model, text)
        entry = self._entries.get(key)
        if entry is not None and entry.expires_at <= self._clock():
            self._drop(key)
            entry = None
        if entry is None:
            self.counts.misses += 1
            return None
        self._entries.move_to_end(key)
        self.counts.hits += 1
        return entry.vector

    def put(self, model: str, text: str, vector: FloatArray) -> None:
        """Keep a vector; the ones unused for longest make room."""
        key = (model, text)
        if key in self._entries:
            self._drop(key)
        size = vector.nbytes + 4 * len(text) + _ENTRY_BYTES
        if size > self._max_bytes:
            return
        while self.bytes + size > self._max_bytes:
            self._drop(next(iter(self._entries)))
            self.counts.evictions += 1
        self._entries[key] = _Entry(vector, size, self._clock() + self._ttl_seconds)
        self.bytes += size

    def forget(self, model: str, vector: FloatArray) -> None:
        """Drop every query of a model that has exactly this vector."""
        alike = [
            key
            for key, entry in self._entries.items()
            if key[0] == model and np.array_equal(entry.vector, vector)
        ]
        for key in alike:
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        self.bytes -= self._entries.pop(key).size


class PassageCache:
    """The vectors of passages of one model, on disk, by the hash of the text.

    An interrupted build goes on where it stopped, and text that has not changed is never paid
    for twice. A folder that cannot be written only costs that.
    """

    def __init__(self, folder: Path, model: str) -> None:
        """Name the file; nothing is opened before it is used."""
        self._folder = folder
        self._file = folder / f"{_digest(model).hex()[:24]}.sqlite"

    def known(self, texts: Sequence[str], dimension: int | None) -> dict[int, FloatArray]:
        """Return the vectors at hand, by the place of their text."""
        if not self._file.exists():
            return {}
        places: dict[bytes, list[int]] = {}
        for place, text in enumerate(texts):
            places.setdefault(_digest(text), []).append(place)
        found: dict[int, FloatArray] = {}
        try:
            with self._opened() as database:
                for digest, raw in _select(database, list(places)):
                    vector = np.frombuffer(raw, dtype="<f4").astype(np.float32)
                    if dimension is None or len(vector) == dimension:
                        found |= dict.fromkeys(places[digest], vector)
                _mark_used(database, list(places))
        except sqlite3.OperationalError as error:
            logger.warning("kept passage vectors cannot be read: %s", error)
        except (sqlite3.Error, OSError, ValueError) as error:
            logger.warning("kept passage vectors are damaged and start anew: %s", error)
            self._file.unlink(missing_ok=True)
            return {}
        return found

    def keep(self, texts: Sequence[str], rows: FloatArray) -> None:
        """Keep the vectors of a batch."""
        today = _today()
        values = [
            (_digest(text), row.astype("<f4").tobytes(), today)
            for text, row in zip(texts, rows, strict=True)
        ]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._opened() as database:
                database.executemany("INSERT OR REPLACE INTO passages VALUES (?, ?, ?)", values)
        except (sqlite3.Error, OSError) as error:
            logger.warning("passage vectors cannot be kept: %s", error)

    def prune(self) -> None:
        """Drop what no build has used for a long time."""
        if not self._file.exists():
            return
        try:
            with self._opened() as database:
                oldest = _today() - _UNUSED_DAYS
                database.execute("DELETE FROM passages WHERE used < ?", (oldest,))
        except (sqlite3.Error, OSError) as error:
            logger.warning("old passage vectors cannot be dropped: %s", error)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, timeout=10)) as database, database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS passages"
                " (digest BLOB PRIMARY KEY, vector BLOB NOT NULL, used INTEGER NOT NULL)"
                " WITHOUT ROWID"
            )
            yield database


def _select(database: sqlite3.Connection, digests: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, len(digests), _READ_AT_ONCE):
        some = digests[start : start + _READ_AT_ONCE]
        marks = ",".join("?" * len(some))
        # Only question marks are put into the statement.
        query = f"SELECT digest, vector FROM passages WHERE digest IN ({marks})"  # noqa: S608
        yield from database.execute(query, some)


def _mark_used(database: sqlite3.Connection, digests: list[bytes]) -> None:
    today = _today()
    database.executemany(
        "UPDATE passages SET used = ? WHERE digest = ? AND used < ?",
        [(today, digest, today) for digest in digests],
    )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", errors="replace")).digest()


def _today() -> int:
    return int(time.time() // 86_400)
