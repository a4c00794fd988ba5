import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.errors import SettingsError
from app.server.security import (
    Allowlist,
    AllowlistState,
    Authority,
    HostGuard,
    OnceLog,
    TokenGuard,
)

PUBLIC, LOOPBACK = "0.0.0.0", "127.0.0.1"  # noqa: S104


def guarded(allowlist: Allowlist, refused: list[str] | None = None) -> TestClient:
    async def answer(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("served")

    counts = [] if refused is None else refused
    app = Starlette(
        routes=[Route("/mcp", answer, methods=["GET", "POST"]), Route("/healthz", answer)],
        middleware=[Middleware(HostGuard, allowlist=allowlist, on_refusal=counts.append)],
    )
    return TestClient(app)


@pytest.mark.parametrize(
    ("entry", "host", "served"),
    [
        ("mcp.example.com", "mcp.example.com", True),
        ("mcp.example.com", "MCP.Example.COM", True),
        ("mcp.example.com", "mcp.example.com:443", True),
        ("mcp.example.com", "mcp.example.com:80", True),
        ("mcp.example.com", "mcp.example.com:8000", False),
        ("mcp.example.com", "mcp.example.com.evil.example", False),
        ("mcp.example.com", "evil-mcp.example.com", False),
        ("MCP.example.com:*", "mcp.example.com:8000", True),
        ("mcp.example.com:*", "mcp.example.com", False),
        ("mcp.example.com:*", "mcp.example.com:evil", False),
        ("mcp.example.com:*", "mcp.example.com:80.evil.example", False),
        ("mcp.example.com:*", "mcp.example.com:", False),
        ("mcp.example.com:*", "mcp.example.com:65536", False),
        ("mcp.example.com:*", "mcp.example.com:۸۰", False),
        ("mcp.example.com:*", "mcp.example.com:*", False),
        ("mcp.example.com:8000", "mcp.example.com:8000", True),
        ("mcp.example.com:8000", "mcp.example.com", False),
        ("mcp.example.com:8000", "mcp.example.com:8001", False),
        ("[::1]:*", "[::1]:8000", True),
        ("[0:0:0:0:0:0:0:1]", "[::1]", True),
        ("::1", "[::1]", True),
        ("[::1]", "[::1]:8000", False),
        ("[::1]:*", "[::1]:x", False),
        ("10.0.0.7:*", "10.0.0.7:31337", True),
    ],
)
def test_a_host_is_served_when_an_entry_means_it(entry: str, host: str, served: bool) -> None:
    assert Allowlist.build([entry], [], PUBLIC).allows_host(host) is served


@pytest.mark.parametrize(
    ("entry", "origin", "served"),
    [
        ("https://app.example.com", "https://app.example.com", True),
        ("https://app.example.com", "HTTPS://APP.example.com", True),
        ("https://app.example.com", "https://app.example.com:443", True),
        ("https://app.example.com", "https://app.example.com:80", False),
        ("https://app.example.com", "http://app.example.com", False),
        ("https://app.example.com", "https://app.example.com:8443", False),
        ("https://app.example.com:*", "https://app.example.com:8443", True),
        ("https://app.example.com:*", "https://app.example.com:evil", False),
        ("app.example.com", "https://app.example.com", True),
        ("app.example.com", "http://app.example.com", True),
        ("https://app.example.com", "https://app.example.com/path", False),
        ("https://app.example.com", "https://app.example.com@evil.example", False),
        ("https://app.example.com", "null", False),
        ("https://app.example.com", "", False),
        ("https://app.example.com", "chrome-extension://app.example.com", False),
        ("https://app.example.com", "https://evil.example", False),
    ],
)
def test_an_origin_is_served_when_an_entry_means_it(entry: str, origin: str, served: bool) -> None:
    allowlist = Allowlist.build(["mcp.example.com"], [entry], PUBLIC)
    assert allowlist.allows_origin(origin, "mcp.example.com") is served


def test_a_page_of_the_served_host_itself_is_no_foreign_origin() -> None:
    allowlist = Allowlist.build(["mcp.example.com", "mcp.example.com:*"], [], PUBLIC)
    assert allowlist.allows_origin("https://mcp.example.com", "mcp.example.com")
    assert allowlist.allows_origin("http://mcp.example.com:8000", "mcp.example.com:8000")
    assert not allowlist.allows_origin("http://mcp.example.com:9000", "mcp.example.com:8000")


@pytest.mark.parametrize(
    "entry", ["*", "*:*", "*.example.com", "https://h", "h/path", "h:1x", "a b"]
)
def test_an_entry_that_is_no_host_is_refused_at_the_start(entry: str) -> None:
    with pytest.raises(SettingsError, match="MCP_ALLOWED_HOSTS"):
        Allowlist.build([entry], [], PUBLIC)


@pytest.mark.parametrize("entry", ["*", "null", "ftp://h", "https://h/path", "https://*"])
def test_an_entry_that_is_no_origin_is_refused_at_the_start(entry: str) -> None:
    if entry == "null":
        # The word is a valid host name, and the Origin `null` still never passes.
        allowlist = Allowlist.build(["h"], [entry], PUBLIC)
        assert not allowlist.allows_origin("null", "h")
        return
    with pytest.raises(SettingsError, match="MCP_ALLOWED_ORIGINS"):
        Allowlist.build(["h"], [entry], PUBLIC)


def test_origins_without_hosts_are_refused_at_the_start() -> None:
    with pytest.raises(SettingsError, match="MCP_ALLOWED_HOSTS"):
        Allowlist.build([], ["https://app.example.com"], LOOPBACK)


@pytest.mark.parametrize("bind", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_a_loopback_address_serves_only_local_names(bind: str) -> None:
    allowlist = Allowlist.build([], [], bind)
    assert allowlist.state is AllowlistState.LOCAL_ONLY
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000"):
        assert allowlist.allows_host(host)
    for host in ("example.com", "localhost.example.com", "192.168.1.7:8000", "localhost:x"):
        assert not allowlist.allows_host(host)
    assert allowlist.allows_origin("http://localhost:6274", "localhost:8000")
    assert not allowlist.allows_origin("https://evil.example", "localhost:8000")


def test_a_public_address_without_hosts_turns_the_check_off_and_says_so() -> None:
    allowlist = Allowlist.build([], [], PUBLIC)
    assert allowlist.state is AllowlistState.OFF
    assert "MCP_ALLOWED_HOSTS" in allowlist.warnings()[0]
    assert guarded(allowlist).get("/mcp", headers={"Host": "any.example"}).status_code == 200


def test_a_wildcard_port_without_the_bare_name_is_warned_about() -> None:
    warned = Allowlist.build(["mcp.example.com:*"], [], PUBLIC).warnings()
    assert len(warned) == 1
    assert "mcp.example.com" in warned[0]
    both = Allowlist.build(["mcp.example.com:*", "mcp.example.com"], [], PUBLIC)
    assert both.warnings("https://mcp.example.com/docs") == []


def test_a_public_url_that_would_be_refused_is_warned_about() -> None:
    warned = Allowlist.build(["mcp.example.com"], [], PUBLIC).warnings("https://docs.example.com")
    assert "docs.example.com" in warned[0]


@given(st.text(max_size=40))
def test_any_text_is_read_as_a_host_or_refused(text: str) -> None:
    authority = Authority.parse(text)
    if authority is not None:
        assert authority.port is None or 0 <= int(authority.port) <= 65535
        assert not set(authority.host) & set(" /@\\?#\r\n")


@given(st.text(max_size=20))
def test_a_wildcard_port_matches_digits_only(port: str) -> None:
    allowlist = Allowlist.build(["h:*"], [], PUBLIC)
    numeric = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    assert allowlist.allows_host(f"h:{port}") is numeric


def test_a_foreign_host_gets_421_and_a_foreign_origin_403_as_json() -> None:
    refused: list[str] = []
    client = guarded(Allowlist.build(["mcp.example.com"], [], PUBLIC), refused)
    ours = {"Host": "mcp.example.com"}
    foreign_host = client.post("/mcp", headers={"Host": "evil.example"})
    foreign_origin = client.post("/mcp", headers=ours | {"Origin": "https://evil.example"})
    no_page = client.post("/mcp", headers=ours | {"Origin": "null"})
    assert [foreign_host.status_code, foreign_origin.status_code] == [421, 403]
    assert no_page.status_code == 403
    assert foreign_host.json()["error"]
    assert foreign_origin.json()["error"]
    assert client.post("/mcp", headers=ours).text == "served"
    assert refused == ["host", "origin", "origin"]


def test_white_space_around_a_header_is_no_part_of_its_value() -> None:
    client = guarded(Allowlist.build(["mcp.example.com"], ["https://a.example"], PUBLIC))
    headers = {"Host": " mcp.example.com\t", "Origin": "\thttps://a.example "}
    assert client.post("/mcp", headers=headers).status_code == 200


def test_paths_that_do_not_exist_keep_the_check() -> None:
    client = guarded(Allowlist.build(["mcp.example.com"], [], PUBLIC))
    for path in ("/", "/nowhere", "/healthz/", "//healthz", "/HEALTHZ"):
        assert client.get(path, headers={"Host": "evil.example"}).status_code == 421


def test_a_probe_names_the_server_by_address_and_port() -> None:
    client = guarded(Allowlist.build(["mcp.example.com"], [], PUBLIC))
    for method in ("GET", "HEAD"):
        response = client.request(method, "/healthz", headers={"Host": "10.1.2.3:8000"})
        assert response.status_code == 200


def test_two_host_headers_are_refused_on_every_path() -> None:
    client = guarded(Allowlist.build([], [], PUBLIC))
    for path in ("/mcp", "/healthz"):
        headers = [("Host", "mcp.example.com"), ("Host", "evil.example")]
        assert client.get(path, headers=headers).status_code == 400


def test_the_log_names_a_refused_value_and_the_variable_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = guarded(Allowlist.build(["mcp.example.com"], [], PUBLIC))
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            client.get("/mcp", headers={"Host": "evil.example"})
        client.get("/mcp", headers={"Host": "mcp.example.com", "Origin": "https://evil.example"})
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "host refused value=evil.example variable=MCP_ALLOWED_HOSTS",
        "origin refused value=https://evil.example variable=MCP_ALLOWED_ORIGINS",
    ]


def test_refused_values_are_remembered_within_limits_and_for_a_while() -> None:
    now = [0.0]
    once = OnceLog(limit=3, window_seconds=60, clock=lambda: now[0])
    assert [once.is_new("H", value) for value in "aabcde"] == [
        True,
        False,
        True,
        True,
        False,
        False,
    ]
    now[0] = 60.0
    assert once.is_new("H", "e")
    assert once.is_new("O", "e")


def with_token(token: str) -> TestClient:
    async def answer(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("served")

    endpoint = TokenGuard(Route("/mcp", answer).app, token, lambda _reason: None)
    return TestClient(Starlette(routes=[Route("/mcp", endpoint)]))


@pytest.mark.parametrize(
    "value", ["Bearer right-token", "bearer right-token", "BEARER  right-token "]
)
def test_the_right_token_passes(value: str) -> None:
    response = with_token("right-token").post("/mcp", headers={"Authorization": value})
    assert response.text == "served"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "Bearer wrong")],
        [("Authorization", "Bearer")],
        [("Authorization", "right-token")],
        [("Authorization", "Basic right-token")],
        [("Authorization", "Bearer right-token-and-more")],
        [("Authorization", "Bearer right-token"), ("Authorization", "Bearer wrong")],
        [("Authorization", b"Bearer \xff\xfe")],
    ],
)
def test_anything_but_the_right_token_gets_401_with_a_challenge(
    headers: list[tuple[str, str | bytes]],
) -> None:
    response = with_token("right-token").post("/mcp", headers=headers)
    assert response.status_code == 401
    challenge = response.headers["WWW-Authenticate"]
    assert challenge.startswith('Bearer realm="')
    assert ('error="invalid_token"' in challenge) == bool(headers)
    assert ("needed" in response.json()["error"]) == (not headers)
