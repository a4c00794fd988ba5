"""The documentation says what the program does: settings, commands and links are held to it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.library.config import load_config
from app.settings import VARIABLES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted({ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("*/*.md")})


def section(title: str) -> str:
    return README.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_readme_lists_every_setting_as_the_program_has_it() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) \| (.*) \|$", section("Settings"), re.MULTILINE)
    assert rows == [(v.name, v.shown_default or v.default or "unset", v.help) for v in VARIABLES]


def test_the_readme_names_every_command_and_no_other() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "app", "--help"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    listed = shown.split("  COMMAND\n")[-1]
    commands = set(re.findall(r"^ {4}([a-z][a-z-]*)", listed, re.MULTILINE))
    named = set(re.findall(r"`([a-z][a-z-]*)(?: [^`]*)?`", section("Commands")))
    named.discard("liara-docs-mcp")
    assert commands
    assert commands == named


def test_the_example_of_a_config_is_the_file_and_can_be_served() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", section("Document sets of your own"), re.DOTALL)
    assert shown == (ROOT / "config.example.json").read_text(encoding="utf-8")
    config = load_config(ROOT / "config.example.json")
    assert config.problems == ()
    assert [options.spec.id for options in config.sets] == ["handbook", "notes"]


def test_both_first_commands_stand_at_the_top_and_exist() -> None:
    top = README[:1500]
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for command in re.findall(r"^make ([a-z]+)", top, re.MULTILINE):
        assert command in targets
    assert "make serve" in top
    assert "make test" in top


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_to_files_of_the_project_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
        assert (document.parent / target).exists(), target
