"""The facts of this project held against the official docs, where the environment names a copy."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.data_files import data_path
from app.liara.manifest import validate_liara_json
from app.liara.manifest_schema import manifest_schema
from app.liara.platforms import PLATFORMS

FENCE = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}|~{3,})(?P<language>[^\n]*)\n(?P<body>.*?)^[ \t>]*(?P=fence)",
    re.MULTILINE | re.DOTALL,
)
KEY = re.compile(r'^\s*\{?\s*"?([A-Za-z-]+)"?\s*:', re.MULTILINE)
# What the docs leave to be filled in: an app's id, a team's id, a version.
PLACEHOLDER = re.compile(r'"(?:app|image|team-id)":\s*"[^"]*(?:<your-|your-team-id)')
# A fenced block with one of these is some other file: package.json and the like.
FOREIGN = {"scripts", "dependencies", "require", "host", "type", "id", "model", "messages"}

# Examples of the docs with a real fault, found by hand: page and JSON path of the fault.
REVIEWED = {
    # A comma after the last entry.
    ("one-click-apps/freescout/how-tos/choose-version.md", "$"),
    ("one-click-apps/pghero/how-tos/choose-version.md", "$"),
    ("one-click-apps/prestashop/how-tos/choose-version.md", "$"),
    ("one-click-apps/umami/how-tos/choose-version.md", "$"),
    ("one-click-apps/varnish/how-tos/choose-version.md", "$"),
    ("paas/dotnet/how-tos/deploy-app.md", "$"),
    ("paas/dotnet/quick-start.md", "$"),
    ("paas/go/how-tos/connect-to-db/sqlite.md", "$"),
    ("paas/liarajson.md", "$"),
    ("paas/python/quick-start.md", "$"),
    # A key without quotes.
    ("one-click-apps/harness/how-tos/choose-version.md", "$"),
    # Two opening brackets.
    ("paas/docker/quick-start.md", "$"),
    # A second tag on an image that has one.
    ("one-click-apps/varnish/how-tos/choose-version.md", "$.image"),
    # The port stands inside the platform's object.
    ("paas/go/quick-start.md", "$.go.port"),
    # A scheduled command without its times.
    ("paas/liarajson.md", "$.cron[0]"),
    ("paas/python/how-tos/set-cron-job.md", "$.cron[0]"),
    # A key that neither the text beside it nor the CLI knows.
    ("paas/laravel/how-tos/deploy-app.md", "$.laravel.mirror"),
    ("paas/laravel/quick-start.md", "$.laravel.mirror"),
}


@pytest.fixture(scope="module")
def pages(official_corpus: Path) -> dict[str, str]:
    root = official_corpus / "public" / "llms"
    return {
        file.relative_to(root).as_posix(): file.read_text(encoding="utf-8-sig")
        for file in sorted(root.rglob("*.md"))
    }


@pytest.fixture(scope="module")
def urls(pages: dict[str, str]) -> set[str]:
    heads = (text.split("\n", 1)[0] for text in pages.values())
    return {head.removeprefix("Original link:").strip() for head in heads}


def examples(pages: dict[str, str]) -> Iterator[tuple[str, str]]:
    known = {*manifest_schema()["properties"]}
    for page, text in pages.items():
        for block in FENCE.finditer(text):
            body = block["body"].strip()
            keys = set(KEY.findall(body))
            if body.startswith("{") and keys & known and not keys & FOREIGN:
                yield page, body


def test_every_example_of_the_docs_passes_or_has_a_reviewed_fault(pages: dict[str, str]):
    found = [*examples(pages)]
    assert len(found) > 300
    seen: set[tuple[str, str]] = set()
    for page, body in found:
        for item in validate_liara_json(body).findings:
            if "placeholder" in item.problem:
                assert PLACEHOLDER.search(body), (page, item, body)
                continue
            if item.severity == "info":
                continue
            assert (page, item.json_path) in REVIEWED, (page, item, body)
            seen.add((page, item.json_path))
    assert seen == REVIEWED


def _urls_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for part in value:
            yield from _urls_in(part)
    elif isinstance(value, str) and value.startswith("https://docs.liara.ir/"):
        yield value


@pytest.mark.parametrize("file", ["platforms.json", "liara.schema.json"])
def test_every_page_that_we_name_exists(file: str, urls: set[str]):
    named = {*_urls_in(json.loads(data_path("liara", file).read_text(encoding="utf-8")))}
    prefixes = {platform.docs_prefix for platform in PLATFORMS.values()}
    assert len(named) > 20
    assert named - prefixes <= urls
    for prefix in prefixes:
        assert any(url.startswith(prefix) for url in urls)


def test_the_docs_have_a_folder_for_no_other_platform(pages: dict[str, str]):
    with_start = {
        page.split("/")[1]
        for page in pages
        if page.endswith("/getting-started.md") and page.startswith("paas/")
    }
    assert {platform.docs_prefix.split("/")[-2] for platform in PLATFORMS.values()} == with_start
