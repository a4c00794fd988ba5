"""What the library tells about its document sets: states, index blocks and events.

Plain values: server/ turns them into /healthz, metrics and the answers of list_docs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.index.snapshot import Manifest
from app.models import Skipped

_SHORT_FINGERPRINT = 12


class SetState(StrEnum):
    """What stands behind the answers of a document set."""

    STARTER = "starter"
    FRESH = "fresh"
    STALE = "stale"
    BUILDING = "building"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class IndexBlock:
    """The facts of one index, the same wherever a document set is described.

    `root` is a folder of this machine: callers that answer over HTTP leave it out. `rev` is what
    `revision` says of the index.
    """

    origin: str
    root: str
    source: str
    rev: str
    rev_date: str | None
    files: int
    chunks: int
    layers: Mapping[str, int]
    state: SetState
    built_at: str
    skipped: tuple[Skipped, ...]


def revision(manifest: Manifest) -> str:
    """Name what an index holds: the commit of a git source, else the hash of its contents."""
    contents = manifest.fingerprint[:_SHORT_FINGERPRINT]
    if manifest.starter:
        return f"starter-{contents}"
    if manifest.origin == "git" and manifest.rev:
        return manifest.rev
    # A folder may hold edits that its checked-out commit does not have.
    return f"{manifest.rev}+{contents}" if manifest.rev else contents


@dataclass(frozen=True, slots=True)
class SetStatus:
    """One document set as it is served now.

    `building` is true while a job runs, whatever the state: starter pages stay `starter` and a
    set without an index stays `empty` until the job is done. `age_seconds` counts from the
    build of the index; `checked_at` is when it was last known to equal its source.
    """

    id: str
    state: SetState
    reason: str | None
    building: bool
    index: IndexBlock | None
    age_seconds: float | None
    checked_at: str | None
    last_error: str | None
    languages: Mapping[str, int]
    pages: int


@dataclass(frozen=True, slots=True)
class LibraryEvent:
    """Something worth counting: `kind` is one of the names below, `set_id` empty for the config.

    Kinds: `refreshed`, `unchanged`, `refresh_failed`, `adopted` (a snapshot that another process
    built), `config_reloaded`, `config_invalid`.
    """

    kind: str
    set_id: str = ""
    detail: str = ""
    seconds: float = 0.0


OnEvent = Callable[[LibraryEvent], None]
