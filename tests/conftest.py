import os
from pathlib import Path

import pytest
from hypothesis import settings

from app.data_files import data_path

# A property says what holds, never how fast: a busy machine must not fail it.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def starter_texts() -> list[str]:
    """The bundled starter pages, one text a file."""
    return [file.read_text(encoding="utf-8") for file in sorted(data_path("starter").rglob("*.md"))]


@pytest.fixture(scope="session")
def official_corpus() -> Path:
    """The folder with the official docs, where the environment names one."""
    folder = os.environ.get("LIARA_CORPUS")
    if not folder:
        pytest.skip("LIARA_CORPUS is not set: the official docs are not at hand")
    return Path(folder)
