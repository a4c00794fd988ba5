import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from app.library.config import SetOptions
from app.library.library import DocumentLibrary
from app.models import DocumentSetSpec
from app.server.hooks import MAX_BODY_BYTES, hook_route, is_signed
from tests.library.repositories import Repository

SECRET = "correct horse battery"
PUSH = json.dumps({"ref": "refs/heads/main", "after": "0" * 40}).encode()


def hex_digest(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def github(body: bytes, event: str = "push") -> dict[str, str]:
    return {"X-GitHub-Event": event, "X-Hub-Signature-256": f"sha256={hex_digest(body)}"}


def gitea(body: bytes) -> dict[str, str]:
    return {"X-Gitea-Event": "push", "X-Gitea-Signature": hex_digest(body)}


def forgejo(body: bytes) -> dict[str, str]:
    return {"X-Forgejo-Event": "push", "X-Forgejo-Signature": hex_digest(body)}


def gitlab(_body: bytes) -> dict[str, str]:
    return {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": SECRET}


def standard(
    body: bytes, *, at: float | None = None, key: bytes = SECRET.encode()
) -> dict[str, str]:
    """GitLab's newer signing, as Standard Webhooks has it."""
    moment = str(int(time() if at is None else at))
    signed = f"msg-1.{moment}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {
        "X-Gitlab-Event": "Push Hook",
        "webhook-id": "msg-1",
        "webhook-timestamp": moment,
        "webhook-signature": f"v1,AAAA v1,{signature}",
    }


ALL_HOSTS = [github, gitea, forgejo, gitlab, standard]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", {"a.md": "# A\n\nThe first text of all.\n"})


@pytest.fixture
def library(tmp_path: Path, repository: Repository) -> DocumentLibrary:
    sets = [
        SetOptions(DocumentSetSpec("team", repository.url), webhook_secret_env="TEAM_SECRET"),
        SetOptions(DocumentSetSpec("unset", repository.url), webhook_secret_env="UNSET_SECRET"),
        SetOptions(DocumentSetSpec("plain", repository.url)),
    ]
    return DocumentLibrary(sets, data_dir=tmp_path / "data")


@pytest.fixture
def client(library: DocumentLibrary) -> Iterator[TestClient]:
    secrets = {"TEAM_SECRET": SECRET, "UNSET_SECRET": ""}
    with TestClient(Starlette(routes=[hook_route(library, secrets.get)])) as client:
        yield client


def rev_after_job(client: TestClient, library: DocumentLibrary, set_id: str = "team") -> str | None:
    """The revision once the running job, if any, has ended."""

    async def wait() -> None:
        job = library.running_job(set_id)
        if job is not None and job.task is not None:
            await asyncio.wait({job.task})

    assert client.portal is not None
    client.portal.call(wait)
    index = library.status(set_id).index
    return None if index is None else index.rev


@pytest.mark.parametrize("signed_by", ALL_HOSTS)
def test_a_signed_push_starts_a_refresh(
    client: TestClient, library: DocumentLibrary, repository: Repository, signed_by: Any
) -> None:
    response = client.post("/hooks/team", content=PUSH, headers=signed_by(PUSH))
    assert response.status_code == 202
    assert response.json() == {"docs": "team", "refresh": "started"}
    assert rev_after_job(client, library) == repository.git("rev-parse", "HEAD")
    second = repository.commit({"a.md": "# A\n\nThe second text of all.\n"})
    assert client.post("/hooks/team", content=PUSH, headers=signed_by(PUSH)).status_code == 202
    assert rev_after_job(client, library) == second


@pytest.mark.parametrize("signed_by", [github, gitea, forgejo, standard])
def test_a_signature_of_another_body_is_refused(
    client: TestClient, library: DocumentLibrary, signed_by: Any
) -> None:
    response = client.post("/hooks/team", content=PUSH + b" ", headers=signed_by(PUSH))
    assert response.status_code == 401
    assert rev_after_job(client, library) is None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Hub-Signature-256": ""},
        {"X-Hub-Signature-256": "sha256="},
        {"X-Hub-Signature-256": f"sha256={hex_digest(PUSH, 'other')}"},
        {"X-Hub-Signature": "sha1=" + hmac.new(SECRET.encode(), PUSH, hashlib.sha1).hexdigest()},
        {"X-Gitlab-Token": ""},
        {"X-Gitlab-Token": SECRET + "x"},
        # A header that is there and wrong is not rescued by another one.
        {"X-Hub-Signature-256": "sha256=00", "X-Gitlab-Token": SECRET},
        {"webhook-signature": "v1,AAAA", "X-Gitlab-Token": SECRET},
    ],
)
def test_what_is_not_signed_is_refused(
    client: TestClient, library: DocumentLibrary, headers: dict[str, str]
) -> None:
    assert client.post("/hooks/team", content=PUSH, headers=headers).status_code == 401
    assert rev_after_job(client, library) is None


@pytest.mark.parametrize("age", [-400, 400])
def test_a_standard_signature_of_another_time_is_refused(client: TestClient, age: int) -> None:
    headers = standard(PUSH, at=time() - age)
    assert client.post("/hooks/team", content=PUSH, headers=headers).status_code == 401


def test_a_standard_secret_may_be_base64_with_its_prefix() -> None:
    key = b"\x00\xff a binary key of 24 byte"
    secret = f"whsec_{base64.b64encode(key).decode()}"
    now = time()
    assert is_signed(Headers(standard(PUSH, at=now, key=key)), PUSH, secret, now=now)
    assert is_signed(Headers(standard(PUSH, at=now, key=secret.encode())), PUSH, secret, now=now)
    assert not is_signed(Headers(standard(PUSH, at=now, key=b"x")), PUSH, secret, now=now)


@pytest.mark.parametrize("set_id", ["other", "unset", "plain", "..%2f", "liara"])
def test_a_set_without_a_secret_looks_like_no_set(client: TestClient, set_id: str) -> None:
    response = client.post(f"/hooks/{set_id}", content=PUSH, headers=github(PUSH))
    assert response.status_code == 404


def test_only_post_is_answered(client: TestClient) -> None:
    assert client.get("/hooks/team").status_code == 405


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("ping", {"zen": "x"}),
        ("issues", {"ref": "refs/heads/main"}),
        ("push", {"ref": "refs/heads/other"}),
        ("push", {"ref": "refs/heads/feature/main"}),
        ("push", {"ref": "refs/tags/v1"}),
    ],
)
def test_an_event_that_changes_nothing_starts_nothing(
    client: TestClient, library: DocumentLibrary, event: str, payload: dict[str, Any]
) -> None:
    body = json.dumps(payload).encode()
    response = client.post("/hooks/team", content=body, headers=github(body, event))
    assert response.status_code == 200
    assert response.json()["refresh"] == "ignored"
    assert rev_after_job(client, library) is None


@pytest.mark.parametrize("body", [b"", b"payload=%7B%7D", b"[]", b"[" * 100_000, b"\xff\xfe"])
def test_a_signed_body_of_any_form_starts_a_refresh(client: TestClient, body: bytes) -> None:
    assert client.post("/hooks/team", content=body, headers=github(body)).status_code == 202


def test_a_body_that_is_too_large_is_refused(client: TestClient) -> None:
    body = b"x" * (MAX_BODY_BYTES + 1)
    assert client.post("/hooks/team", content=body, headers=github(body)).status_code == 413


def test_a_push_while_a_refresh_runs_is_not_lost(
    client: TestClient, library: DocumentLibrary, repository: Repository
) -> None:
    """Each event may come after the job has read the source: it has to look again."""
    for number in range(4):
        last = repository.commit({"a.md": f"# A\n\nThe text of edition {number}.\n"})
        assert client.post("/hooks/team", content=PUSH, headers=github(PUSH)).status_code == 202
    assert rev_after_job(client, library) == last


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "x-hub-signature-256",
                "x-gitea-signature",
                "x-forgejo-signature",
                "x-gitlab-token",
                "webhook-signature",
                "webhook-timestamp",
                "webhook-id",
            ]
        ),
        st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=40),
    ),
    st.binary(max_size=50),
)
def test_headers_made_up_without_the_secret_never_pass(
    headers: dict[str, str], body: bytes
) -> None:
    assert not is_signed(Headers(headers), body, SECRET, now=time())
