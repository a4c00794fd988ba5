import re

import pytest
from mcp import Client

from tests.server.tools_document import DOCUMENT, renewed

pytestmark = pytest.mark.anyio


def undated(text: str) -> str:
    """The text without dates, and without the revision, which names the format, too."""
    text = re.sub(r"\d{4}-\d\d-\d\d(?:T[\d:]+\+00:00)?", "DATE", text)
    return re.sub(r"starter-[0-9a-f]{12}", "REVISION", text)


async def test_the_examples_are_what_the_tools_answer(starter: Client) -> None:
    """Run `python -m tests.server.tools_document` where this fails."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.count("<!-- ") == len(re.findall(r"^<!-- .* lines \d+ \d+ -->$", text, re.M)) > 6
    assert undated(await renewed(text, starter)) == undated(text)
