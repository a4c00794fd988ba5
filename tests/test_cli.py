import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from app import __version__
from app.cli import main
from app.settings import VARIABLES

ROOT = Path(__file__).resolve().parent.parent
PAGE = "Original link: https://docs.liara.ir/paas/disks/about/\n\n# Disks\n\nA disk keeps files.\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Only a data folder is set, whatever the shell has; logging is left as it is."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("app.cli.configure_logging", lambda _level: None)
    return tmp_path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small copy of the layout of the official docs, with a file that cannot be used."""
    folder = tmp_path / "docs" / "public" / "llms" / "paas"
    folder.mkdir(parents=True)
    (folder / "disks.md").write_text("\ufeff" + PAGE, encoding="utf-8")
    (folder / "binary.md").write_bytes(b"\x00\xff\xfe")
    return tmp_path / "docs"


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"liara-docs-mcp {__version__}\n"


def test_sync_builds_a_set_and_accounts_for_every_file(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sync", "--source", str(source)]) == 0
    printed = capsys.readouterr().out
    assert "1 files, 1 chunks" in printed
    assert "skipped public/llms/paas/binary.md" in printed
    assert main(["search", "disk", "files"]) == 0
    assert "https://docs.liara.ir/paas/disks/about/" in capsys.readouterr().out


def test_a_failed_sync_says_why_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sync", "--source", str(tmp_path / "nowhere")]) == 1
    assert "liara:" in capsys.readouterr().out


def test_syncing_an_unknown_set_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sync", "nosuch"]) == 2
    assert "liara" in capsys.readouterr().err


def test_search_answers_from_the_starter_pages_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["search", "-k", "1", "دیسک"]) == 0
    output = capsys.readouterr()
    assert re.match(r"\[\d+\] .* — https://docs\.liara\.ir/\S*disks", output.out)
    assert "starter pages" in output.err


def test_doctor_finds_nothing_wrong_with_a_fresh_folder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "ok       PORT = 8000" in lines
    assert "ok       Host check: local only" in lines
    assert any(line.startswith("warning  liara is starter") for line in lines)
    assert not any(line.startswith("error") for line in lines)


def test_without_a_home_the_data_folder_is_all_that_is_written(tmp_path: Path) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "app", "search", "دیسک"],
        cwd=elsewhere,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "DATA_DIR": str(data)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert "https://docs.liara.ir/" in done.stdout
    assert list(elsewhere.iterdir()) == []
    assert (data / "starter").is_dir()


def test_doctor_fails_on_a_data_folder_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "file" / "below"))
    assert main(["doctor"]) == 1
    assert "DATA_DIR" in capsys.readouterr().out


def test_doctor_warns_of_a_wildcard_without_its_bare_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MCP_ALLOWED_HOSTS", "mcp.example.com:*")
    assert main(["doctor"]) == 0
    assert "warning  MCP_ALLOWED_HOSTS has mcp.example.com:*" in capsys.readouterr().out


@pytest.mark.parametrize(("command", "code"), [("doctor", 1), ("serve", 2), ("stdio", 2)])
def test_a_bad_setting_ends_every_command_with_the_name_of_the_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, code: int
) -> None:
    monkeypatch.setenv("PORT", "eighty")
    assert main([command]) == code
    assert "PORT='eighty'" in capsys.readouterr().err


def test_an_option_is_checked_like_the_variable_it_stands_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["serve", "--port", "65536"]) == 2
    assert "PORT='65536'" in capsys.readouterr().err


def test_doctor_warns_that_a_public_address_leaves_out_the_sets_of_the_config(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOST", "0.0.0.0")  # noqa: S104
    assert main(["doctor"]) == 0
    assert "leaves out the sets of the config" in capsys.readouterr().out
    monkeypatch.setenv("MCP_TOKEN", "t0ken")
    assert main(["doctor"]) == 0
    assert "leaves out the sets of the config" not in capsys.readouterr().out


def test_doctor_warns_that_a_public_address_leaves_out_reindex(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REINDEX", "on")
    assert main(["doctor"]) == 0
    assert "leaves out the tool reindex" not in capsys.readouterr().out
    monkeypatch.setenv("PUBLIC_URL", "https://mcp.example.com")
    assert main(["doctor"]) == 0
    assert "leaves out the tool reindex" in capsys.readouterr().out


def test_a_bad_allowlist_is_found_before_anything_is_served(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MCP_ALLOWED_HOSTS", "*")
    assert main(["serve"]) == 2
    assert main(["doctor"]) == 1
    assert "MCP_ALLOWED_HOSTS=*" in capsys.readouterr().err


def test_a_named_config_that_does_not_exist_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["doctor", "--config", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["serve"], ["--http"]])
def test_serve_listens_where_it_is_told_and_ends_well_on_sigterm(
    arguments: list[str], tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "app", *arguments, "--port", str(port)]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | {"SYNC_ON_START": "0"},
        cwd=Path(__file__).parents[1],
    ) as process:
        try:
            assert process.stderr is not None
            assert any(f":{port}" in line for line in process.stderr)
            health = httpx.get(f"http://127.0.0.1:{port}/healthz")
            assert health.status_code == 200
            assert "server" not in health.headers
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=15)
        finally:
            process.kill()
    assert process.returncode == 0
    assert output == ""
    assert "Traceback" not in errors
