"""GET /healthz (is the process alive, what does it serve) and GET /readyz (can it answer).

Both read values that are in memory, and answer at once while an index is built.
"""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from app import __version__
from app.library.library import DocumentLibrary
from app.library.status import SetState, SetStatus
from app.library.vectors import VectorStatus
from app.server.rendering import config_error, dense_report, takes_part
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
        dense = {status.id: self._library.vector_status(status.id) for status in statuses}
        body = {
            "status": self._status(statuses, dense),
            "version": __version__,
            "chunks": sum(status.index.chunks for status in statuses if status.index),
            "dense_search": any(map(takes_part, dense.values())),
            "embeddings": self._embeddings(),
            "allowed_hosts": str(self._allowlist.state),
            "token": self._token,
            "config_error": config_error(self._library),
            "left_out": list(self._library.config.problems),
            "docs": {status.id: _set_report(status, dense[status.id]) for status in statuses},
        }
        return JSONResponse(body, headers=_NO_STORE)

    async def readyz(self, _request: Request) -> JSONResponse:
        """200 once an index is loaded, 503 until then."""
        ready = self._library.ready
        return JSONResponse({"ready": ready}, 200 if ready else 503, headers=_NO_STORE)

    def _status(
        self, statuses: tuple[SetStatus, ...], dense: Mapping[str, VectorStatus | None]
    ) -> str:
        if not self._library.ready:
            return "starting"
        lost = any(leg is not None and not takes_part(leg) for leg in dense.values())
        unserved = self._library.config_error or self._library.config.problems
        return "degraded" if lost or unserved or any(map(_is_degraded, statuses)) else "ok"

    def _embeddings(self) -> dict[str, Any] | None:
        """Describe the endpoint and what replicas share; None where no set has a model."""
        vectors = self._library.vectors
        if vectors is None or not vectors.is_wanted:
            return None
        encoders = vectors.encoders
        redis = "off" if encoders.shared is None else "up" if encoders.shared.is_up else "down"
        return {
            "breaker": str(encoders.endpoint.breaker.state),
            "calls_today": encoders.budget.calls_today,
            "daily_limit": encoders.budget.limit,
            "redis": encoders.shared_error or redis,
        }


def _is_degraded(status: SetStatus) -> bool:
    return status.last_error is not None or status.state in (SetState.EMPTY, SetState.STALE)


def _set_report(status: SetStatus, dense: VectorStatus | None) -> dict[str, Any]:
    report: dict[str, Any] = {
        "state": str(status.state),
        "reason": status.reason,
        "building": status.building,
        "pages": status.pages,
        "age_seconds": None if status.age_seconds is None else round(status.age_seconds),
    }
    if dense is not None:
        report["dense"] = dense_report(dense)
    index = status.index
    if index is not None:
        # The folder stays out: this answer is open to anyone.
        report |= {
            "origin": index.origin,
            "rev": index.rev,
            "rev_date": index.rev_date,
            "built_at": index.built_at,
            "checked_at": status.checked_at,
            "files": index.files,
            "chunks": index.chunks,
            "skipped": len(index.skipped),
        }
    return report
