"""POST /hooks/<id>: a git host says that a source has changed, signed with a shared secret.

The body decides nothing but whether a refresh is due: what is fetched is fixed by the config.
"""

import base64
import binascii
import hashlib
import hmac
import json
import logging
from collections.abc import Callable
from time import time
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from app.errors import DocumentSetNotFoundError
from app.library.library import DocumentLibrary
from app.server.logging_setup import fields

logger = logging.getLogger(__name__)

SecretOf = Callable[[str], str | None]
"""Returns the value of an environment variable that the config names."""

# GitHub sends at most 25 MB; a push event is rarely over 100 KB.
MAX_BODY_BYTES = 2 * 1024 * 1024
BODY_TIMEOUT_SECONDS = 10.0
# Standard Webhooks: older deliveries may be replays.
MAX_AGE_SECONDS = 300

_EVENT_HEADERS = ("x-github-event", "x-gitea-event", "x-forgejo-event", "x-gitlab-event")
# GitLab calls them "Push Hook", "Tag Push Hook" and, for system hooks, "System Hook".
_PUSH_EVENTS = frozenset({"push", "create", "push hook", "tag push hook", "system hook"})


def hook_route(library: DocumentLibrary, secret_of: SecretOf) -> Route:
    """Return the route of the webhooks of all sets; sets without a secret have none."""
    return Route("/hooks/{set_id}", WebhookEndpoint(library, secret_of).answer, methods=["POST"])


class WebhookEndpoint:
    """Starts the refresh of a set when its git host proves that it sent the event."""

    def __init__(self, library: DocumentLibrary, secret_of: SecretOf) -> None:
        """Look secrets up at each delivery, by the name that the set's config gives."""
        self._library = library
        self._secret_of = secret_of

    async def answer(self, request: Request) -> JSONResponse:
        """Answer 202 when a refresh was started, 200 when the event is of no interest."""
        set_id = request.path_params["set_id"]
        secret = self._secret(set_id)
        if secret is None:
            # The same for no such set and for a set without webhook: neither is revealed.
            return JSONResponse({"error": "no webhook of that name"}, 404)
        try:
            with anyio.fail_after(BODY_TIMEOUT_SECONDS):
                body = await _read(request)
        except TimeoutError:
            return JSONResponse({"error": "the request body took too long"}, 408)
        except ClientDisconnect:
            return JSONResponse({"error": "the request body is not complete"}, 400)
        if body is None:
            return JSONResponse({"error": "request body too large"}, 413)
        if not is_signed(request.headers, body, secret, now=time()):
            logger.warning("webhook refused %s", fields(docs=set_id, reason="signature"))
            return JSONResponse({"error": "the signature does not fit"}, 401)
        return self._act(set_id, request.headers, body)

    def _secret(self, set_id: str) -> str | None:
        try:
            variable = self._library.options(set_id).webhook_secret_env
        except DocumentSetNotFoundError:
            return None
        return (self._secret_of(variable) or None) if variable else None

    def _act(self, set_id: str, headers: Headers, body: bytes) -> JSONResponse:
        reason = _why_ignored(headers, body, self._library.spec(set_id).ref)
        if reason is not None:
            return JSONResponse({"docs": set_id, "refresh": "ignored", "reason": reason})
        logger.info("webhook %s", fields(docs=set_id))
        self._library.start_refresh(set_id, again=True)
        return JSONResponse({"docs": set_id, "refresh": "started"}, 202)


def is_signed(headers: Headers, body: bytes, secret: str, *, now: float) -> bool:
    """Return whether a delivery proves knowledge of the secret, in the way its headers name.

    GitHub, Gitea and Forgejo sign the body; GitLab sends Standard Webhooks signatures or, in its
    older form, the secret itself. The first of these headers that is present decides.
    """
    if "webhook-signature" in headers:
        return _is_standard_signed(headers, body, secret, now)
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    for name in ("x-hub-signature-256", "x-forgejo-signature", "x-gitea-signature"):
        if name in headers:
            return _equal(headers[name].removeprefix("sha256=").lower(), digest)
    return "x-gitlab-token" in headers and _equal(headers["x-gitlab-token"], secret)


def _is_standard_signed(headers: Headers, body: bytes, secret: str, now: float) -> bool:
    moment = headers.get("webhook-timestamp", "")
    if not (moment.isascii() and moment.isdigit() and len(moment) < 15):
        return False
    if abs(now - int(moment)) > MAX_AGE_SECONDS:
        return False
    signed = f"{headers.get('webhook-id', '')}.{moment}.".encode() + body
    for key in _keys(secret):
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        for signature in headers["webhook-signature"].split():
            version, _, value = signature.partition(",")
            if version == "v1" and _equal(value, expected):
                return True
    return False


def _keys(secret: str) -> list[bytes]:
    """Return what the secret may mean: its bytes or, with the usual prefix, what it encodes."""
    keys = [secret.encode()]
    if secret.startswith("whsec_"):
        try:
            keys.append(base64.b64decode(secret.removeprefix("whsec_"), validate=True))
        except binascii.Error:
            return keys
    return keys


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


async def _read(request: Request) -> bytes | None:
    """Return the body, or None as soon as it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)


def _why_ignored(headers: Headers, body: bytes, ref: str) -> str | None:
    """Say why an event changes nothing for a set that follows `ref`; None when it may."""
    event = next((headers[name] for name in _EVENT_HEADERS if name in headers), "push")
    if event.lower() not in _PUSH_EVENTS:
        return "not a push"
    try:
        payload: Any = json.loads(body)
    except (ValueError, RecursionError):
        # A form-encoded or empty body: signed all the same, so something has happened.
        return None
    pushed = payload.get("ref") if isinstance(payload, dict) else None
    if not isinstance(pushed, str) or ref == "HEAD":
        return None
    named = {ref, f"refs/heads/{ref}", f"refs/tags/{ref}"}
    return None if pushed in named else "another ref"
