"""Imports go one way, and what touches the outside world stays where it belongs."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parent.parent / "app"

# Each layer with the layers that it may import from.
ALLOWED = {
    "errors": set(),
    "models": set(),
    "data_files": set(),
    "settings": {"errors"},
    "embeddings": {"errors", "models"},
    "liara": {"errors", "models", "data_files"},
    "index": {"errors", "models"},
    "retrieval": {"errors", "models", "data_files", "index", "embeddings"},
    "ingestion": {"errors", "models", "data_files", "index", "embeddings"},
    "evaluation": {"errors", "models", "data_files", "index", "retrieval", "ingestion"},
    "library": {
        "errors", "models", "data_files", "index", "embeddings", "retrieval", "ingestion", "liara",
    },
}  # fmt: skip
CONFINED = {
    "starlette": {"server"},
    "uvicorn": {"server", "cli"},
    "mcp": {"server"},
    "mcp_types": {"server"},
    "prometheus_client": {"server"},
    "subprocess": {"ingestion"},
    "httpx": {"embeddings"},
    "argparse": {"cli"},
    "rank_bm25": {"evaluation"},
    "numpy": {"index", "retrieval", "embeddings", "evaluation"},
}


def layer_of(module: Path) -> str:
    return module.relative_to(APP).parts[0].removesuffix(".py")


def imports_of(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


MODULES = sorted(APP.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(APP)))
def test_imports_go_one_way(module: Path) -> None:
    layer = layer_of(module)
    if layer not in ALLOWED:
        return
    ours = {name.split(".")[1] for name in imports_of(module) if name.startswith("app.")}
    assert ours <= ALLOWED[layer] | {layer}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(APP)))
def test_what_touches_the_outside_stays_in_its_place(module: Path) -> None:
    for name in imports_of(module):
        places = CONFINED.get(name.split(".")[0])
        if places is not None:
            assert layer_of(module) in places, f"{module} imports {name}"


def test_only_the_settings_read_the_environment() -> None:
    readers = {
        module.relative_to(APP).as_posix()
        for module in MODULES
        if any(word in module.read_text(encoding="utf-8") for word in ("os.environ", "os.getenv"))
    }
    # git inherits the environment of the process, with what keeps it from asking and running.
    assert readers <= {"settings.py", "ingestion/sources.py"}


def test_only_the_composition_roots_read_settings() -> None:
    readers = {
        module.relative_to(APP).as_posix()
        for module in MODULES
        if "app.settings" in set(imports_of(module))
    }
    allowed = {"cli.py", "server/application.py"}
    assert readers <= allowed | {"server/doctor.py"}
