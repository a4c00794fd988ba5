"""Logging to standard error: one line an event, key=value fields, nothing hostile unescaped."""

import logging
import sys
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


def configure_logging(level: str, stream: TextIO | None = None) -> None:
    """Send every record of `level` and above to standard error, in the format of this module."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel("DEBUG" if level == "DEBUG" else "WARNING")
