import json
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
from starlette.testclient import TestClient

from app.server.application import create_app
from app.settings import Settings
from tests.server.serving import Served, serving


def test_before_the_library_is_loaded_the_process_is_alive_and_not_ready(
    environ: dict[str, str],
) -> None:
    # Without its context the client does not start the lifespan, which loads the library.
    client = TestClient(create_app(Settings.from_env(environ)), base_url="http://localhost")
    assert client.get("/readyz").status_code == 503
    health = client.get("/healthz")
    assert health.status_code == 200
    assert health.json()["status"] == "starting"
    assert health.json()["chunks"] == 0
    assert client.get("/metrics").status_code == 200
    assert client.get("/").status_code == 200


def health_of_set(served: Served, set_id: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{served.url}/healthz").json()["docs"][set_id]
    return found


def test_a_set_without_a_source_degrades_the_health_and_shows_no_folder(
    environ: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    sets = {"docs": {"team": {"source": "nowhere"}}, "default": {"docs": "team"}}
    config.write_text(json.dumps(sets), encoding="utf-8")
    with serving(environ | {"DOCS_CONFIG": str(config), "DATA_DIR": str(tmp_path)}) as served:
        served.call("tools/call", {"name": "ask_docs", "arguments": {"question": "x"}})
        health = httpx.get(f"{served.url}/healthz")
        assert health.status_code == 200
        assert health.json()["status"] == "degraded"
        assert health_of_set(served, "team")["state"] == "empty"
        assert health_of_set(served, "team")["reason"]
        assert str(tmp_path) not in health.text
        assert str(tmp_path) not in httpx.get(f"{served.url}/metrics").text
        assert httpx.get(f"{served.url}/readyz").status_code == 200


def test_a_bad_set_and_a_bad_edit_of_the_config_are_shown_without_file_names(
    environ: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    sets = {"team": {"source": "docs"}, "bad": {"source": "docs", "topk": 3}}
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nSome text.\n", encoding="utf-8")
    config.write_text(json.dumps({"docs": sets, "default": {"docs": "team"}}), encoding="utf-8")
    variables = {"DOCS_CONFIG": str(config), "DATA_DIR": str(tmp_path / "data")}
    with serving(environ | variables) as served:
        # Answered once everything is loaded.
        served.call("tools/call", {"name": "list_docs", "arguments": {}})
        health = httpx.get(f"{served.url}/healthz").json()
        assert health["left_out"][0].startswith("docs.bad.topk: unknown key")
        assert (health["config_error"], health["status"]) == (None, "degraded")
        config.write_text("{ not JSON", encoding="utf-8")
        deadline = monotonic() + 20
        while not (answer := httpx.get(f"{served.url}/healthz")).json()["config_error"]:
            assert monotonic() < deadline
        assert "the one before it is in use" in answer.json()["config_error"]
        assert str(tmp_path) not in answer.text
