"""Logging to standard error: one line an event, key=value fields, nothing hostile unescaped."""

import atexit
import logging
import os
import queue
import sys
import threading
import time
from typing import TextIO

# Per request and at INFO, these repeat what our own lines say.
_QUIET_LOGGERS = ("mcp", "httpx", "httpcore", "asyncio", "watchfiles")

_ZWNJ = "\u200c"


def escape(text: str) -> str:
    """Return the text with control, bidi and other unseen characters as escapes.

    ZWNJ stays, as Persian words need it.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character == _ZWNJ
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def fields(**values: object) -> str:
    """Return `key=value` pairs; a value with anything but plain characters is quoted."""
    return " ".join(f"{key}={_field_value(value)}" for key, value in values.items())


def _field_value(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    if text and all(character.isalnum() or character in "._-:/@+*[]" for character in text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class LineFormatter(logging.Formatter):
    """Formats a record, with its traceback if it has one, as a single line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line: UTC time, level, logger and the escaped message."""
        message = record.getMessage().rstrip("\n")
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            message = f"{message} {fields(exception=trace)}"
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return (
            f"{moment}.{int(record.msecs):03d}Z {record.levelname} {record.name} {escape(message)}"
        )


class BackgroundHandler(logging.Handler):
    """Writes lines in a thread of its own, so that a reader who stopped reading blocks nobody.

    A client of the stdio server may never read its standard error, and a pipe holds 64 KiB. When
    the queue is full, records are dropped and counted.
    """

    def __init__(self, stream: TextIO, capacity: int = 10_000) -> None:
        """Start the thread; it ends with the process."""
        super().__init__()
        self._stream = stream
        self._descriptor = _descriptor(stream)
        self._lines: queue.Queue[str] = queue.Queue(capacity)
        self._dropped = 0
        threading.Thread(target=self._write, name="log", daemon=True).start()
        atexit.register(self.drain, 1.0)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the line of a record."""
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001
            # What every handler of the standard library does: a bad record ends no request.
            self.handleError(record)
            return
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def drain(self, timeout_seconds: float) -> None:
        """Wait until what is queued is written, for a while."""
        deadline = time.monotonic() + timeout_seconds
        with self._lines.all_tasks_done:
            while self._lines.unfinished_tasks and time.monotonic() < deadline:
                self._lines.all_tasks_done.wait(max(deadline - time.monotonic(), 0))

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            dropped, self._dropped = self._dropped, 0
            if dropped:
                line = f"{line}\n{dropped} log lines dropped: standard error was not read"
            try:
                self._put(f"{line}\n")
            except (OSError, ValueError):
                # The stream is closed: there is nobody to tell.
                return
            finally:
                self._lines.task_done()

    def _put(self, text: str) -> None:
        if self._descriptor is None:
            self._stream.write(text)
            return
        # Not through the stream: its lock, held by a blocked thread, would abort the process
        # at its end.
        rest = text.encode("utf-8", "backslashreplace")
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except OSError:
        return None


def configure_logging(level: str, stream: TextIO | None = None) -> None:
    """Send every record of `level` and above to standard error, in the format of this module."""
    handler = BackgroundHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel("DEBUG" if level == "DEBUG" else "WARNING")
