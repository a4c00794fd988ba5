"""The logs of tests/liara/logs with what is expected of each."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

LOGS = Path(__file__).parent / "logs"
DOCS = "https://docs.liara.ir"


@dataclass(frozen=True)
class LogCase:
    """One log: its class (None: unknown), words of its signature, first page and platform."""

    name: str
    text: str
    error_class: str | None
    signature: str
    page: str | None
    platform: str | None


def load_cases() -> list[LogCase]:
    """Read every log that shows an error."""
    expected = tomllib.loads((LOGS / "expected.toml").read_text(encoding="utf-8"))
    return [
        LogCase(
            name=name,
            text=(LOGS / f"{name}.log").read_text(encoding="utf-8"),
            error_class=entry.get("error_class"),
            signature=entry["signature"],
            page=DOCS + entry["page"] if "page" in entry else None,
            platform=entry.get("platform"),
        )
        for name, entry in expected.items()
    ]


def load_logs_without_error() -> dict[str, str]:
    """Read the logs of builds and runs that went well."""
    files = sorted((LOGS / "without_error").glob("*.log"))
    return {file.stem: file.read_text(encoding="utf-8") for file in files}
