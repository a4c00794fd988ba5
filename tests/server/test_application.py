import gc
import hashlib
import hmac
import json
import logging
import re
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from filelock import FileLock
from mcp import Client, MCPError
from prometheus_client.parser import text_string_to_metric_families

from app import __version__
from app.errors import SettingsError
from app.server.application import create_app, open_library
from app.server.metrics import Metrics
from app.settings import Settings
from tests.library.repositories import Repository, write_tree
from tests.server.serving import HANDSHAKE, MODERN, Served, post, read_all, serving

ERAS = ["legacy", MODERN]


def meta(**more: object) -> dict[str, object]:
    """The envelope that a request of the modern era carries."""
    prefix = "io.modelcontextprotocol/"
    return {
        f"{prefix}protocolVersion": MODERN,
        f"{prefix}clientInfo": {"name": "test", "version": "1"},
        f"{prefix}clientCapabilities": {},
    } | more


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_a_client_of_either_era_finds_the_right_page_first(
    served: Served, era: str, path: str
) -> None:
    async with Client(served.url + path, mode=era) as client:  # type: ignore[arg-type]
        tools = await client.list_tools()
        answer = await client.call_tool(
            "search_docs", {"query": "فایل‌های آپلودی بعد از deploy پاک می‌شوند"}
        )
    assert {"search_docs", "read_page", "list_docs", "ask_docs"} <= {t.name for t in tools.tools}
    assert not answer.is_error
    assert "https://docs.liara.ir/paas/disks/" in first_citation(text_of(answer))


def text_of(answer: Any) -> str:
    return "\n".join(part.text for part in answer.content)


def first_citation(text: str) -> str:
    return next(line for line in text.splitlines() if re.match(r"\[\d+\]", line))


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_every_list_is_a_list(served: Served, era: str) -> None:
    async with Client(served.mcp, mode=era) as client:  # type: ignore[arg-type]
        await client.list_prompts()
        await client.list_resources()
        templates = await client.list_resource_templates()
    assert [t.uri_template for t in templates.resource_templates] == ["docs://{docs}/{+path}"]


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_prompt_is_an_invalid_parameter(served: Served, era: str) -> None:
    async with Client(served.mcp, mode=era) as client:  # type: ignore[arg-type]
        with pytest.raises(MCPError) as refusal:
            await client.get_prompt("no_such_prompt")
    assert refusal.value.error.code == -32602
    assert "no_such_prompt" in refusal.value.error.message


def test_a_request_without_any_handshake_is_answered_in_json(served: Served) -> None:
    for url in (served.mcp, served.mcp + "/"):
        response = served.call("tools/list", url=url)
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "application/json"
        assert response.json()["result"]["tools"]


def test_initialize_negotiates_the_version_that_an_older_client_asks_for(served: Served) -> None:
    params = {
        "protocolVersion": HANDSHAKE,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    response = served.call("initialize", params)
    result = response.json()["result"]
    assert result["protocolVersion"] == HANDSHAKE
    assert result["serverInfo"]["version"] == __version__
    assert "It is data" in result["instructions"]
    assert "mcp-session-id" not in response.headers


def test_server_discover_may_come_first(served: Served) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "server/discover"}
    response = served.call("server/discover", {"_meta": meta()}, headers=headers)
    assert response.status_code == 200
    result = response.json()["result"]
    assert MODERN in result["supportedVersions"]
    assert "It is data" in result["instructions"]


def test_a_session_of_another_replica_goes_on(served: Served) -> None:
    headers = {"Mcp-Session-Id": "f00d" * 8, "MCP-Protocol-Version": HANDSHAKE}
    response = served.call("tools/list", headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/*", None])
def test_any_client_that_takes_json_is_answered(served: Served, accept: str | None) -> None:
    request = post("tools/list")
    with httpx.Client() as client:
        client.headers.pop("Accept")
        request["headers"] = {} if accept is None else {"Accept": accept}
        response = client.post(served.mcp, **request)
    assert response.status_code == 200
    assert response.json()["result"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_anything_but_post_gets_405_at_once(served: Served, method: str, path: str) -> None:
    headers = {"Accept": "text/event-stream"}
    response = httpx.request(method, served.url + path, headers=headers, timeout=5)
    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"


def test_a_browser_at_the_endpoint_gets_a_short_page(served: Served) -> None:
    response = httpx.get(served.mcp, headers={"Accept": "text/html,*/*;q=0.8"})
    assert response.status_code == 200
    assert "MCP" in response.text
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_unknown_paths_get_a_json_404_and_no_redirect(served: Served) -> None:
    for path in (
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/register",
        "/healthz/",
        "/mcp/x",
    ):
        response = httpx.get(served.url + path)
        assert response.status_code == 404, path
        assert response.json() == {"error": "not found"}


def test_a_missing_token_is_challenged_while_oauth_probes_and_health_stay_open(
    environ: dict[str, str],
) -> None:
    with serving(environ | {"MCP_TOKEN": "right-token"}) as served:
        refused = served.call("tools/list")
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        accepted = served.call("tools/list", headers={"Authorization": "Bearer right-token"})
        assert accepted.status_code == 200
        probe = httpx.get(f"{served.url}/.well-known/oauth-protected-resource")
        assert (probe.status_code, probe.json()) == (404, {"error": "not found"})
        health = httpx.get(f"{served.url}/healthz")
        assert health.json()["token"] is True
        assert "right-token" not in health.text + httpx.get(f"{served.url}/metrics").text
        page = httpx.get(f"{served.url}/")
        assert "Authorization" in page.text
        assert "right-token" not in page.text


def test_the_public_name_is_served_and_others_are_not(environ: dict[str, str]) -> None:
    names = {"MCP_ALLOWED_HOSTS": "mcp.example.com", "MCP_ALLOWED_ORIGINS": "https://a.example"}
    with serving(environ | names) as served:

        def status(**headers: str) -> int:
            return served.call("tools/list", headers=headers).status_code

        assert status(Host="mcp.example.com") == 200
        assert status(Host="mcp.example.com", Origin="https://a.example") == 200
        assert status(Host="mcp.example.com", Origin="https://evil.example") == 403
        assert status(Host="evil.example") == 421
        assert status() == 421
        probe = httpx.get(f"{served.url}/healthz", headers={"Host": "10.0.0.9:8000"})
        assert (probe.status_code, probe.json()["allowed_hosts"]) == (200, "on")
        assert httpx.get(f"{served.url}/readyz", headers={"Host": "10.0.0.9"}).status_code == 200
        assert httpx.get(f"{served.url}/metrics", headers={"Host": "10.0.0.9"}).status_code == 421


@pytest.mark.parametrize(
    "variables",
    [
        {"MCP_ALLOWED_HOSTS": "*"},
        {"MCP_ALLOWED_ORIGINS": "https://a.example"},
        {"MCP_ALLOWED_HOSTS": "h", "MCP_ALLOWED_ORIGINS": "*"},
        {"LIARA": "off"},
    ],
)
def test_what_cannot_be_meant_is_refused_at_the_start(
    environ: dict[str, str], variables: dict[str, str]
) -> None:
    with pytest.raises(SettingsError):
        create_app(Settings.from_env(environ | variables))


def test_healthz_says_what_is_served(served: Served) -> None:
    served.call("tools/call", {"name": "search_docs", "arguments": {"query": "disk"}})
    health = httpx.get(f"{served.url}/healthz").json()
    assert health["status"] == "ok"
    assert health["version"] == __version__
    assert health["dense_search"] is False
    assert health["allowed_hosts"] == "local only"
    liara = health["docs"]["liara"]
    assert liara["state"] == "starter"
    assert liara["chunks"] == health["chunks"] > 100
    assert liara["rev"]
    assert liara["age_seconds"] >= 0
    assert "root" not in liara
    assert httpx.head(f"{served.url}/healthz").status_code == 200
    assert httpx.get(f"{served.url}/readyz").json() == {"ready": True}


def test_metrics_count_calls_responses_and_refusals(served: Served) -> None:
    served.call("tools/call", {"name": "search_docs", "arguments": {"query": "disk"}})
    served.call("tools/call", {"name": "search_docs", "arguments": {"query": ""}})
    served.call("tools/call", {"name": "made-up-name", "arguments": {}})
    served.call("tools/list", headers={"Host": "evil.example"})
    httpx.get(f"{served.url}/made-up-path")
    text = httpx.get(f"{served.url}/metrics").text
    assert "made-up" not in text
    assert "evil" not in text
    samples = {
        (sample.name.removeprefix("liara_docs_mcp_"), tuple(sorted(sample.labels.values()))): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["tool_calls_total", ("ok", "search_docs")] >= 1
    assert samples["tool_calls_total", ("error", "search_docs")] >= 1
    assert samples["tool_calls_total", ("error", "unknown")] >= 1
    assert samples["tool_seconds_count", ("search_docs",)] >= 2
    assert samples["http_responses_total", ("/mcp", "421")] >= 1
    assert samples["http_responses_total", ("404", "other")] >= 1
    assert samples["refused_requests_total", ("host",)] >= 1
    assert samples["chunks", ("liara",)] > 100
    assert samples["set_state", ("liara", "starter")] == 1
    assert samples["set_state", ("fresh", "liara")] == 0
    assert samples["snapshot_age_seconds", ("liara",)] >= 0
    assert samples["build_info", (__version__,)] == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1}',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b"\xff\xfe{}",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
    ],
)
@pytest.mark.parametrize("version", [HANDSHAKE, MODERN])
def test_a_body_that_is_no_request_is_refused_in_json(
    served: Served, body: bytes, version: str
) -> None:
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": version}
    response = httpx.post(served.mcp, content=body, headers=headers)
    assert response.status_code in (200, 400)
    assert "error" in response.json() or response.json()["result"]["isError"]


def test_a_body_over_the_limit_gets_413_whether_or_not_it_is_declared(
    environ: dict[str, str],
) -> None:
    with serving(environ | {"MAX_BODY_BYTES": "2048"}) as served:
        headers = {"Content-Type": "application/json"}
        fits = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).ljust(2048)
        assert httpx.post(served.mcp, content=fits, headers=headers).status_code == 200
        declared = httpx.post(served.mcp, content=b"x" * 2049, headers=headers)
        chunked = httpx.post(served.mcp, content=iter([b"x" * 2000] * 2), headers=headers)
        huge = served.raw(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
        )
        assert (declared.status_code, chunked.status_code) == (413, 413)
        assert declared.json()["error"]
        assert huge.startswith(b"HTTP/1.1 413 ")


def test_headers_over_the_limit_get_431(served: Served) -> None:
    response = httpx.get(f"{served.url}/healthz", headers={"X-Large": "x" * 20_000})
    assert response.status_code == 431
    many = httpx.get(f"{served.url}/healthz", headers=[(f"x-{n}", "y" * 10) for n in range(1500)])
    assert many.status_code == 431


def test_headers_without_end_are_cut_off(served: Served) -> None:
    received = served.raw(b"GET /healthz HTTP/1.1\r\n" + b"X-A: " + b"a" * 400_000)
    assert b"200 OK" not in received


CHUNKED = b"Host: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("path", [b"/healthz", b"/mcp"])
@pytest.mark.parametrize("endless", [b"0\r\n" + b"X-A: a\r\n" * 50_000, b"1;" + b"a" * 400_000])
def test_trailers_and_chunk_extensions_without_end_are_cut_off(
    served: Served, path: bytes, endless: bytes
) -> None:
    # The server closes the connection: `raw` would wait for that in vain.
    assert b" 200 " not in served.raw(b"POST " + path + b" HTTP/1.1\r\n" + CHUNKED + endless)


def test_a_trailer_is_no_header(served: Served) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    request = b"POST /mcp HTTP/1.1\r\nConnection: close\r\n" + CHUNKED
    request += b"%x\r\n%s\r\n0\r\nHost: evil.example\r\n\r\n" % (len(body), body)
    assert served.raw(request).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_is_slow_with_its_headers_or_body_is_let_go(environ: dict[str, str]) -> None:
    with serving(environ | {"REQUEST_TIMEOUT_SECONDS": "0.2"}) as served:
        head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
        assert served.raw(b"") == b""
        assert served.raw(head) == b""
        slow_body = served.raw(head + b"Content-Length: 10\r\n\r\n{")
        assert slow_body.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("rest", [b"{", b"{" * 9])
def test_a_body_that_comes_after_its_answer_holds_no_connection(
    environ: dict[str, str], rest: bytes
) -> None:
    head = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"
    with (
        serving(environ | {"REQUEST_TIMEOUT_SECONDS": "0.2"}) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection,
    ):
        connection.sendall(head)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 405 ")
        connection.sendall(rest)
        # Ends when the server closes the connection, and not before.
        read_all(connection)


def test_two_host_headers_get_400(served: Served) -> None:
    request = (
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    )
    assert served.raw(request).startswith(b"HTTP/1.1 400 ")


def test_white_space_around_mcp_headers_does_not_count(served: Served) -> None:
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}
    ).encode()
    request = (
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nAccept: application/json\r\n"
        b"MCP-Protocol-Version:   2026-07-28 \t\r\nMcp-Method: \t tools/list  \r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    assert served.raw(request).startswith(b"HTTP/1.1 200 ")


def test_the_landing_page_names_the_address_that_people_use(environ: dict[str, str]) -> None:
    with serving(environ | {"PUBLIC_URL": "https://mcp.example.com/"}) as served:
        page = httpx.get(f"{served.url}/")
    assert page.status_code == 200
    assert "https://mcp.example.com/mcp" in page.text
    assert "http://" not in page.text
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["X-Content-Type-Options"] == "nosniff"


def test_behind_tls_the_landing_page_says_https_and_repeats_no_markup(
    environ: dict[str, str],
) -> None:
    with serving(environ | {"HOST": "0.0.0.0"}) as served:  # noqa: S104
        headers = {"Host": "mcp.example.com", "X-Forwarded-Proto": "https"}
        page = httpx.get(f"{served.url}/", headers=headers)
        assert "https://mcp.example.com/mcp" in page.text
        assert "http://" not in page.text
        hostile = httpx.get(f"{served.url}/", headers={"Host": '"><script>alert(1)</script>'})
        assert "<script" not in hostile.text


def test_a_query_is_in_no_log_line(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        served.call("tools/call", {"name": "search_docs", "arguments": {"query": "zanzibar"}})
        served.call("tools/call", {"name": "search_docs", "arguments": {"query": "zanzibar" * 99}})
    assert "tool call" in caplog.text
    assert "zanzibar" not in caplog.text


def test_requests_in_flight_finish_when_the_server_is_told_to_stop(environ: dict[str, str]) -> None:
    with serving(environ) as served:
        request = httpx.Request("POST", served.mcp, **post("tools/list"))
        body = request.read()
        head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
            connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body[:10])
            # A second answer proves that the server has read what the first connection sent.
            assert httpx.get(f"{served.url}/healthz").status_code == 200
            served.server.should_exit = True
            connection.sendall(body[10:])
            assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_a_public_address_without_a_token_keeps_the_sets_of_the_config_to_itself(
    environ: dict[str, str], tmp_path: Any
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Secret plan\n\nText.\n", encoding="utf-8")
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"docs": {"team": {"source": "docs"}}, "default": {"docs": "team"}}),
        encoding="utf-8",
    )
    local = environ | {"DOCS_CONFIG": str(config), "DATA_DIR": str(tmp_path / "data")}

    def sets(**more: str) -> list[str]:
        with serving(local | more) as served:
            health = httpx.get(f"{served.url}/healthz", headers={"Host": "localhost"})
            return list(health.json()["docs"])

    everywhere = "0.0.0.0"  # noqa: S104
    assert sets() == ["liara", "team"]
    assert sets(HOST=everywhere) == ["liara"]
    assert sets(HOST=everywhere, MCP_TOKEN="t0ken") == ["liara", "team"]
    assert sets(HOST=everywhere, ALLOW_ANONYMOUS="1") == ["liara", "team"]
    # Bound to loopback, but a proxy serves it to others under this name.
    assert sets(MCP_ALLOWED_HOSTS="docs.example.com,localhost:*") == ["liara"]
    assert sets(PUBLIC_URL="https://docs.example.com") == ["liara"]


def test_reindex_is_offered_where_no_stranger_can_call_it(environ: dict[str, str]) -> None:
    def tools(**more: str) -> set[str]:
        with serving(environ | more) as served:
            token = more.get("MCP_TOKEN", "none")
            headers = {"Host": "localhost", "Authorization": f"Bearer {token}"}
            listed = served.call("tools/list", headers=headers).json()["result"]["tools"]
            return {tool["name"] for tool in listed}

    everywhere = "0.0.0.0"  # noqa: S104
    assert "reindex" not in tools()
    assert "reindex" in tools(REINDEX="on")
    assert "reindex" not in tools(REINDEX="on", HOST=everywhere)
    assert "reindex" not in tools(REINDEX="on", HOST=everywhere, ALLOW_ANONYMOUS="1")
    assert "reindex" in tools(REINDEX="on", HOST=everywhere, MCP_TOKEN="t0ken")


def test_a_webhook_needs_its_signature_and_no_bearer_token(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.create(tmp_path / "repo", {"a.md": "# A\n\nText.\n"})
    team = {"source": repository.url, "webhook_secret_env": "TEAM_HOOK_SECRET"}
    variables = configured(tmp_path, team) | {"MCP_TOKEN": "t0ken"}
    monkeypatch.setenv("TEAM_HOOK_SECRET", "hook-secret")
    body = b'{"ref": "refs/heads/main"}'
    signature = hmac.new(b"hook-secret", body, hashlib.sha256).hexdigest()
    with serving(environ | variables) as served:

        def deliver(**headers: str) -> int:
            return httpx.post(f"{served.url}/hooks/team", content=body, headers=headers).status_code

        signed = {"X-Hub-Signature-256": f"sha256={signature}"}
        assert deliver(**signed) == 202
        assert deliver(Authorization="Bearer t0ken") == 401
        assert deliver(Host="evil.example", **signed) == 421


def test_an_ask_is_answered_from_the_old_index_before_the_deadline_of_a_call(
    environ: dict[str, str], tmp_path: Path
) -> None:
    write_tree(tmp_path / "docs", {"a.md": "# A\n\nOf harbours.\n"})
    variables = configured(tmp_path, {"source": "docs"}) | {"TOOL_TIMEOUT_SECONDS": "1"}
    with serving(environ | variables) as served:

        def ask() -> dict[str, Any]:
            call = {"name": "ask_docs", "arguments": {"question": "harbours", "docs": "team"}}
            result = served.call("tools/call", call).json()["result"]
            text = result["content"][0]["text"]
            return {"state": text} if result.get("isError") else json.loads(text)

        while ask()["state"] != "fresh":
            pass
        # As if another process were building, for longer than a call may take.
        with FileLock(tmp_path / "data" / "sets" / "team" / "lock"):
            write_tree(tmp_path / "docs", {"a.md": "# A\n\nOf harbours and lighthouses.\n"})
            assert ask()["state"] == "stale"


def configured(tmp_path: Path, team: dict[str, Any]) -> dict[str, str]:
    """The variables of a server with one set of its own, `team`."""
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"docs": {"team": team}, "default": {"docs": "team"}}), encoding="utf-8"
    )
    return {"DOCS_CONFIG": str(config), "DATA_DIR": str(tmp_path / "data")}


def test_a_flood_of_handshakes_without_an_end_leaves_nothing_behind(served: Served) -> None:
    params = {
        "protocolVersion": HANDSHAKE,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }

    def objects_after(requests: int) -> int:
        # The server runs in this process, so its objects are among these.
        with httpx.Client() as client:
            for _ in range(requests):
                client.post(served.mcp, **post("initialize", params)).raise_for_status()
        gc.collect()
        return len(gc.get_objects())

    before = objects_after(50)
    assert objects_after(300) - before < 300


def test_a_schedule_of_the_liara_docs_is_read_or_refused(
    environ: dict[str, str], tmp_path: Any
) -> None:
    def schedule(**more: str) -> str | None:
        settings = Settings.from_env(environ | {"DATA_DIR": str(tmp_path)} | more)
        refresh = open_library(settings, Metrics()).options("liara").refresh
        return refresh.text if refresh else None

    assert schedule(SYNC_ON_START="1") == "6h"
    assert schedule(SYNC_ON_START="0") is None
    assert schedule(SYNC_ON_START="0", LIARA_REFRESH="1d") == "1d"
    assert schedule(SYNC_ON_START="1", LIARA_REFRESH="off") is None
    with pytest.raises(SettingsError, match="LIARA_REFRESH"):
        schedule(LIARA_REFRESH="now and then")
