import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NEEDED = PROJECT["project"]["dependencies"]


@pytest.mark.parametrize(
    ("lock", "needed"),
    [
        ("requirements.lock", NEEDED),
        ("requirements-dev.lock", [*NEEDED, *PROJECT["dependency-groups"]["dev"]]),
    ],
)
def test_a_lock_pins_what_the_project_asks_for(lock: str, needed: list[str]) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", text, re.MULTILINE))
    for requirement in map(Requirement, needed):
        pin = pins.get(requirement.name)
        assert pin, f"{requirement.name} is not in {lock}: run make lock"
        assert requirement.specifier.contains(pin), f"{lock} has {requirement.name} {pin}"


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_names_no_package_index(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    assert "--hash=sha256:" in text
