"""Renews the examples of docs/tools.md: `python -m tests.server.tools_document`.

A comment before a block says which call it shows: `<!-- TOOL ARGUMENTS lines HEAD TAIL -->`, where
ARGUMENTS is a JSON object, or the name of the argument that the block before holds.
"""

import asyncio
import json
import re
import tempfile
from pathlib import Path

from mcp import Client

from app.server.mcp_server import build_server
from app.server.metrics import Metrics
from tests.server.liara_pages import starter_library

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "tools.md"
_EXAMPLE = re.compile(
    r"<!-- (?P<tool>\S+)(?: (?P<arguments>\{[^\n]*\}|\w+))? lines (?P<head>\d+) (?P<tail>\d+) -->\n"
    r"````(?P<kind>\w+)\n.*?\n````",
    re.DOTALL,
)


async def renewed(text: str, client: Client) -> str:
    """Return the document with each example as the server answers now."""
    pieces, done = [], 0
    for found in _EXAMPLE.finditer(text):
        answer = await _answer(client, found, text[: found.start()])
        comment = found[0].split("\n", 1)[0]
        shown = _abridged(answer, int(found["head"]), int(found["tail"]))
        pieces += [text[done : found.start()], f"{comment}\n````{found['kind']}\n{shown}\n````"]
        done = found.end()
    return "".join([*pieces, text[done:]])


async def _answer(client: Client, found: re.Match[str], before: str) -> str:
    if found["tool"].startswith("liara://"):
        (content,) = (await client.read_resource(found["tool"])).contents
        return str(getattr(content, "text", ""))
    arguments = found["arguments"]
    if not arguments.startswith("{"):
        given = {arguments: before.split("````")[-2].partition("\n")[2].rstrip("\n")}
    else:
        given = json.loads(arguments)
    result = await client.call_tool(found["tool"], given)
    return "\n".join(str(getattr(part, "text", "")) for part in result.content)


def _abridged(answer: str, head: int, tail: int) -> str:
    lines = answer.split("\n")
    if len(lines) <= head + tail + 1:
        return answer
    return "\n".join([*lines[:head], "[… abridged …]", *lines[len(lines) - tail :]])


async def _renew(folder: Path) -> None:
    async with Client(build_server(starter_library(folder), Metrics())) as client:
        text = await renewed(DOCUMENT.read_text(encoding="utf-8"), client)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_renew(Path(folder)))
