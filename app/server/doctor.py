"""`doctor`: looks at what a server needs before it starts, and says what to do about it."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.library.library import DocumentLibrary
from app.library.status import SetState, SetStatus
from app.server.security import Allowlist

# The official docs take about 60 MB of checkout and snapshots; a rebuild needs them twice.
_LEAST_FREE_MEBIBYTES = 300


class Severity(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    severity: Severity
    text: str

    def __str__(self) -> str:
        """Return the line as it is printed."""
        return f"{self.severity:<8} {self.text}"


def check_settings(shown: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """List the settings in effect; what cannot be used has been refused before."""
    for name, value in shown:
        yield Finding(Severity.OK, f"{name} = {value}")


def check_allowlist(allowlist: Allowlist, public_url: str | None) -> Iterator[Finding]:
    """Say whom the server would answer."""
    yield Finding(Severity.OK, f"Host check: {allowlist.state}")
    for warning in allowlist.warnings(public_url):
        yield Finding(Severity.WARNING, warning)


def check_git() -> Iterator[Finding]:
    """Look for git, which every remote source needs."""
    git = shutil.which("git")
    if git is None:
        yield Finding(Severity.ERROR, "git is not on the PATH: install it to fetch the docs")
    else:
        yield Finding(Severity.OK, f"git: {git}")


def check_data_dir(data_dir: Path) -> Iterator[Finding]:
    """Write a file where snapshots go, and look at the free space."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data_dir):
            pass
        free = shutil.disk_usage(data_dir).free // 2**20
    except OSError as error:
        problem = error.strerror or error
        yield Finding(Severity.ERROR, f"{data_dir}: {problem}: name a writable folder in DATA_DIR")
        return
    yield Finding(Severity.OK, f"{data_dir} is writable")
    if free < _LEAST_FREE_MEBIBYTES:
        yield Finding(Severity.WARNING, f"{data_dir} has only {free} MiB left")


def check_sets(library: DocumentLibrary) -> Iterator[Finding]:
    """Load every document set and say what it would answer from."""
    for problem in library.config.problems:
        yield Finding(Severity.ERROR, f"config: {problem}")
    library.load()
    yield from map(_check_set, library.statuses())


def _check_set(status: SetStatus) -> Finding:
    reason = f": {status.reason}" if status.reason else ""
    text = f"{status.id} is {status.state}{reason}"
    advice = f"run `liara-docs-mcp sync {status.id}`"
    if status.state is SetState.EMPTY:
        return Finding(Severity.ERROR, f"{text}; {advice}")
    if status.index is not None:
        text += f" ({status.index.files} files, {status.index.chunks} chunks,"
        text += f" built {status.index.built_at})"
    if status.state is SetState.FRESH:
        return Finding(Severity.OK, text)
    return Finding(Severity.WARNING, f"{text}; {advice}")
