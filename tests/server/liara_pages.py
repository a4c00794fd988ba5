"""Libraries over the set `liara`, and what a client is answered from them."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp import Client

from app.data_files import data_path
from app.liara.corpus import LIARA_SPEC
from app.library.library import DocumentLibrary

URL = "https://docs.liara.ir/"
CITATION = re.compile(r"^\s*\[(\d+)\].*?(https?://[^\s)>\]]+)", re.M)


def starter_library(data_dir: Path) -> DocumentLibrary:
    """The set as it answers before anything is fetched."""
    library = DocumentLibrary(
        [LIARA_SPEC], data_dir=data_dir, starter_dir=data_path("starter"), sync_on_start=False
    )
    library.load()
    return library


async def official_library(folder: Path, pages: Mapping[str, str]) -> DocumentLibrary:
    """The set as it answers from a fetched corpus of these pages, by their path below the site."""
    for path, text in pages.items():
        file = folder / "source" / "public" / "llms" / f"{path}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        linked = f"\ufeffOriginal link: {URL}{path}/\n\n{text}"
        file.write_text(linked, encoding="utf-8", newline="")
    spec = replace(LIARA_SPEC, source=str(folder / "source"))
    library = DocumentLibrary([spec], data_dir=folder / "data", sync_on_start=False)
    library.load()
    status = await library.refresh(spec.id)
    assert status.last_error is None
    return library


async def ask(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return text_of(answer)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer.content
    return text_of(answer)


def text_of(answer: Any) -> str:
    assert answer.structured_content is None
    (part,) = answer.content
    return str(part.text)


def citations(text: str) -> list[tuple[str, str]]:
    return CITATION.findall(text)
