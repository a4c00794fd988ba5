"""Arrays, strings and texts on disk: plain files, memory-mapped on reading, never pickled."""

import json
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

from app.errors import SnapshotError

CHECKSUMS_FILE = "checksums.json"
_BLOCK_BYTES = 1 << 20


def save_array(file: Path, array: npt.NDArray[Any]) -> None:
    """Write one array in numpy's own format."""
    with file.open("wb") as target:
        np.save(target, array, allow_pickle=False)


def load_array(file: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Map one array of `dtype` read-only into memory.

    Raises:
        SnapshotError: The file is missing, damaged or of another type.
    """
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, OverflowError, TokenError) as error:
        raise SnapshotError(f"{file.name} cannot be read: {error}") from error
    if array.dtype != np.dtype(dtype):
        raise SnapshotError(f"{file.name} holds {array.dtype}, not {np.dtype(dtype)}")
    # A plain view of the mapped pages: the memmap class costs microseconds at every slice.
    return np.asarray(array).view(np.ndarray)


def save_strings(file: Path, strings: Iterable[str]) -> None:
    """Write strings as a JSON list."""
    file.write_text(json.dumps(list(strings), ensure_ascii=False), encoding="utf-8")


def load_strings(file: Path) -> list[str]:
    """Read a list of strings.

    Raises:
        SnapshotError: The file is missing or is not a JSON list.
    """
    content = load_json(file)
    if not isinstance(content, list):
        raise SnapshotError(f"{file.name} is not a list")
    return content


def save_json(file: Path, content: object) -> None:
    """Write a JSON file."""
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def load_json(file: Path) -> Any:
    """Read a JSON file.

    Raises:
        SnapshotError: The file is missing or is not JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SnapshotError(f"{file.name} cannot be read: {error}") from error


def save_checksums(folder: Path) -> None:
    """Write the size and CRC-32 of every file of a folder beside them."""
    save_json(folder / CHECKSUMS_FILE, {file.name: _checksum(file) for file in folder.iterdir()})


def check_checksums(folder: Path) -> None:
    """Compare the files of a folder with what `save_checksums` wrote.

    Costs about a millisecond a megabyte. A changed byte would otherwise show as a wrong answer.

    Raises:
        SnapshotError: A file is missing or is not as it was written.
    """
    expected = load_json(folder / CHECKSUMS_FILE)
    names = {file.name for file in folder.iterdir()} - {CHECKSUMS_FILE}
    if not isinstance(expected, dict) or not names <= expected.keys():
        raise SnapshotError(f"{CHECKSUMS_FILE} does not name every file")
    for name, checksum in expected.items():
        try:
            is_whole = _checksum(folder / Path(name).name) == checksum
        except OSError as error:
            raise SnapshotError(f"{name} cannot be read: {error}") from error
        if not is_whole:
            raise SnapshotError(f"{name} is damaged")


def _checksum(file: Path) -> list[int]:
    size = crc = 0
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK_BYTES):
            size, crc = size + len(block), zlib.crc32(block, crc)
    return [size, crc]


class TextStore:
    """Many texts in one file of UTF-8, read one at a time from mapped memory."""

    def __init__(self, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> None:
        """Take the bytes of all texts and where each starts, with the end as a last item."""
        self._data = data
        self._starts: list[int] = starts.tolist()

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> "TextStore":
        """Hold texts that are in memory."""
        # A lone surrogate cannot be UTF-8; it comes back as a question mark.
        encoded = [text.encode("utf-8", errors="replace") for text in texts]
        starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), starts)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:
        """Return one text."""
        data = self._data[self._starts[number] : self._starts[number + 1]]
        return data.tobytes().decode("utf-8")

    def save(self, folder: Path, name: str) -> None:
        """Write the texts as `<name>.*` files into `folder`."""
        save_array(folder / f"{name}.bytes.npy", self._data)
        save_array(folder / f"{name}.starts.npy", np.asarray(self._starts, dtype=np.int64))

    @classmethod
    def load(cls, folder: Path, name: str) -> "TextStore":
        """Map what `save` wrote.

        Raises:
            SnapshotError: A file is missing or damaged.
        """
        return cls(
            load_array(folder / f"{name}.bytes.npy", np.uint8),
            load_array(folder / f"{name}.starts.npy", np.int64),
        )
