import io
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.logging_setup import LineFormatter, configure_logging, escape, fields


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configure_logging("INFO", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def test_an_event_is_one_line_with_time_level_logger_and_fields(log: io.StringIO) -> None:
    logging.getLogger("app.x").info("host refused %s", fields(value="evil.example", count=3))
    line = log.getvalue()
    assert line.endswith("Z INFO app.x host refused value=evil.example count=3\n")
    assert line.count("\n") == 1


def test_hostile_text_cannot_start_a_line_or_colour_the_terminal(log: io.StringIO) -> None:
    logging.getLogger("app.x").warning("got %s", fields(value="a\nERROR forged\x1b[31m\u202eb"))
    assert log.getvalue().count("\n") == 1
    assert "\x1b" not in log.getvalue()
    assert "\u202e" not in log.getvalue()
    assert r"\nERROR forged\x1b[31m\u202eb" in log.getvalue()


def test_a_traceback_stays_on_the_line_of_its_event(log: io.StringIO) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logging.getLogger("app.x").exception("it broke")
    assert log.getvalue().count("\n") == 1
    assert "ValueError" in log.getvalue()


def test_persian_text_stays_readable() -> None:
    assert escape("می‌خواهم") == "می‌خواهم"


@given(st.text())
def test_a_field_is_escaped_whatever_it_holds(text: str) -> None:
    record = logging.LogRecord("n", logging.INFO, "", 0, "m %s", (fields(value=text),), None)
    line = LineFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert all(character.isprintable() or character == "\u200c" for character in line)
