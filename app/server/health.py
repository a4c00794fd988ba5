"""GET /healthz (is the process alive, what does it serve) and GET /readyz (can it answer).

Both read values that are in memory, and answer at once while an index is built.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from app import __version__
from app.library.library import DocumentLibrary
from app.library.status import SetState, SetStatus
from app.server.security import Allowlist

_NO_STORE = {"Cache-Control": "no-store"}


class HealthEndpoints:
    """The two probes over one library."""

    def __init__(self, library: DocumentLibrary, allowlist: Allowlist, *, token: bool) -> None:
        """Report on `library`; `token` says whether /mcp asks for one."""
        self._library = library
        self._allowlist = allowlist
        self._token = token

    async def healthz(self, _request: Request) -> JSONResponse:
        """Always 200 while the process lives; `status` and the sets say what is wrong."""
        statuses = self._library.statuses()
        body = {
            "status": self._status(statuses),
            "version": __version__,
            "chunks": sum(status.index.chunks for status in statuses if status.index),
            "dense_search": False,
            "allowed_hosts": str(self._allowlist.state),
            "token": self._token,
            "config_error": self._library.config_error,
            "docs": {status.id: _set_report(status) for status in statuses},
        }
        return JSONResponse(body, headers=_NO_STORE)

    async def readyz(self, _request: Request) -> JSONResponse:
        """200 once an index is loaded, 503 until then."""
        ready = self._library.ready
        return JSONResponse({"ready": ready}, 200 if ready else 503, headers=_NO_STORE)

    def _status(self, statuses: tuple[SetStatus, ...]) -> str:
        if not self._library.ready:
            return "starting"
        return "degraded" if any(map(_is_degraded, statuses)) else "ok"


def _is_degraded(status: SetStatus) -> bool:
    return status.last_error is not None or status.state in (SetState.EMPTY, SetState.STALE)


def _set_report(status: SetStatus) -> dict[str, Any]:
    report: dict[str, Any] = {
        "state": str(status.state),
        "reason": status.reason,
        "building": status.building,
        "pages": status.pages,
        "age_seconds": None if status.age_seconds is None else round(status.age_seconds),
    }
    index = status.index
    if index is not None:
        # The folder stays out: this answer is open to anyone.
        report |= {
            "origin": index.origin,
            "rev": index.rev,
            "rev_date": index.rev_date,
            "built_at": index.built_at,
            "files": index.files,
            "chunks": index.chunks,
            "skipped": len(index.skipped),
        }
    return report
