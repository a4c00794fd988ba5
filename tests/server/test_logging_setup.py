import io
import logging
import os
from collections.abc import Iterator
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.logging_setup import (
    BackgroundHandler,
    LineFormatter,
    configure_logging,
    escape,
    fields,
)


class Log:
    """Standard error as a test sees it."""

    def __init__(self, stream: TextIO) -> None:
        self._root = logging.getLogger()
        self._before = self._root.handlers[:], self._root.level
        configure_logging("INFO", stream)
        handler = self._root.handlers[0]
        assert isinstance(handler, BackgroundHandler)
        self.handler = handler
        self._stream = stream

    def text(self) -> str:
        self.handler.drain(5)
        assert isinstance(self._stream, io.StringIO)
        return self._stream.getvalue()

    def close(self) -> None:
        self._root.handlers[:] = self._before[0]
        self._root.setLevel(self._before[1])


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log(io.StringIO())
    yield log
    log.close()


def test_an_event_is_one_line_with_time_level_logger_and_fields(log: Log) -> None:
    logging.getLogger("app.x").info("host refused %s", fields(value="evil.example", count=3))
    assert log.text().endswith("Z INFO app.x host refused value=evil.example count=3\n")
    assert log.text().count("\n") == 1


def test_hostile_text_cannot_start_a_line_or_colour_the_terminal(log: Log) -> None:
    logging.getLogger("app.x").warning("got %s", fields(value="a\nERROR forged\x1b[31m\u202eb"))
    assert log.text().count("\n") == 1
    assert "\x1b" not in log.text()
    assert "\u202e" not in log.text()
    assert r"\nERROR forged\x1b[31m\u202eb" in log.text()


def test_a_traceback_stays_on_the_line_of_its_event(log: Log) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logging.getLogger("app.x").exception("it broke")
    assert log.text().count("\n") == 1
    assert "ValueError" in log.text()


def test_a_standard_error_that_nobody_reads_blocks_nobody() -> None:
    read_end, write_end = os.pipe()
    with open(read_end, encoding="utf-8") as reader, open(write_end, "w", encoding="utf-8") as pipe:  # noqa: PTH123
        log = Log(pipe)
        try:
            for number in range(20_000):
                logging.getLogger("app.x").info("%s %s", number, "x" * 100)
            lines = [reader.readline() for _ in range(10_000)]
        finally:
            log.close()
    assert lines[0].endswith(f"0 {'x' * 100}\n")
    assert any("log lines dropped" in line for line in lines)


def test_persian_text_stays_readable() -> None:
    assert escape("می‌خواهم") == "می‌خواهم"


@given(st.text())
def test_a_field_is_escaped_whatever_it_holds(text: str) -> None:
    record = logging.LogRecord("n", logging.INFO, "", 0, "m %s", (fields(value=text),), None)
    line = LineFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert all(character.isprintable() or character == "\u200c" for character in line)
