"""search_docs and read_page, called by a real client."""

import json
import re
from datetime import UTC, datetime

import pytest
from mcp import Client
from mcp_types import PromptReference, ResourceTemplateReference

from app.liara.platforms import PLATFORMS
from tests.server.liara_pages import (
    URL,
    ask,
    citations,
    refused,
    text_of,
)

pytestmark = pytest.mark.anyio

DISKS = f"{URL}paas/disks/about/"
LONG_PAGE = "# صفحهٔ بلند\n\n" + "\n\n".join(
    f"## بخش {n}\n\n" + "\n".join(f"سطر {n}-{line} دربارهٔ تنظیم." for line in range(40))
    for n in range(1, 31)
)
PAGES = {
    "paas/disks/about": "# دیسک‌ها\n\nبرای ذخیرهٔ دائمی فایل، دیسک بسازید.\n\n## ساخت دیسک\n\n"
    "```bash\nliara disk:create\n```\n",
    "paas/domains/add-domain": "# افزودن دامنه\n\nدامنهٔ خود را به برنامه وصل کنید.\n",
    "paas/long": LONG_PAGE,
    "paas/links": "# پیوندها\n\n" + "[](a) " * 3000,
    "paas/details/private-network": "# شبکهٔ خصوصی\n\nبرنامه و دیتابیس در یک شبکهٔ خصوصی باشند.\n",
    "dbaas/redis/quick-setup": "# راه‌اندازی Redis\n\nRedis یک پایگاه دادهٔ سریع است.\n",
}


async def test_every_tool_is_described_for_a_model_and_only_reads(official: Client) -> None:
    tools = {tool.name: tool for tool in (await official.list_tools()).tools}
    for name in (
        "search_docs", "read_page", "platform_docs", "diagnose_log", "validate_liara_json"
    ):  # fmt: skip
        tool = tools[name]
        assert tool.title
        # Clients put a prefix with the server's name before it; 64 characters is their limit.
        assert len(f"mcp__liara-docs-mcp__{name}") <= 64
        assert tool.description
        assert tool.annotations
        assert tool.annotations.read_only_hint is True
        assert tool.output_schema is None
        for argument, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{name}.{argument}"
    assert tools["search_docs"].input_schema["required"] == ["query"]
    assert tools["platform_docs"].input_schema["properties"]["platform"]["enum"] == list(PLATFORMS)


async def test_a_search_returns_numbered_snippets_with_titles_and_urls(official: Client) -> None:
    text = await ask(official, "search_docs", query="چطور دیسک بسازم؟")
    assert citations(text)[0][1].split("#")[0] == DISKS
    assert re.search(rf"^\[\d+\] دیسک‌ها( › ساخت دیسک)? — {DISKS}", text, re.M)


async def test_a_citation_number_is_the_same_in_every_answer(official: Client) -> None:
    first = citations(await ask(official, "search_docs", query="دیسک", k=8))
    second = citations(await ask(official, "search_docs", query="ساخت دیسک دائمی", k=8))
    urls = dict(first)
    assert {number for number, _ in first} & {number for number, _ in second}
    assert all(urls.get(number, url) == url for number, url in second)


@pytest.mark.parametrize(("k", "most"), [(-3, 1), (0, 1), (1, 1), (8, 8), (10**12, 8)])
async def test_k_is_clamped(starter: Client, k: int, most: int) -> None:
    found = citations(await ask(starter, "search_docs", query="دیسک و دامنه و دیتابیس", k=k))
    assert len(found) == most


async def test_five_snippets_of_up_to_600_characters_come_by_default(starter: Client) -> None:
    text = await ask(starter, "search_docs", query="تنظیم متغیرهای محیطی")
    body = text[text.index("\n", text.index("<docs ")) : text.index("\n</docs>")]
    blocks = re.split(r"^\[\d+\][^\n]*\n", body, flags=re.M)[1:]
    assert len(blocks) == 5
    assert all(len(block.strip()) <= 600 for block in blocks)


async def test_a_query_of_300_characters_is_taken_and_a_longer_one_refused(
    official: Client,
) -> None:
    await ask(official, "search_docs", query=("دیسک " * 60).strip() + "ه")
    assert "300" in await refused(official, "search_docs", query="د" * 301)


@pytest.mark.parametrize("query", ["", "   ", "؟!", "\u200c"])
async def test_a_query_without_words_is_refused(official: Client, query: str) -> None:
    assert await refused(official, "search_docs", query=query)


async def test_a_query_that_nothing_matches_gets_titles_and_advice(official: Client) -> None:
    text = await ask(official, "search_docs", query="qqzzxx vvwwkk")
    assert citations(text) == []
    assert "Nothing in this documentation matches" in text
    assert "Try other words" in text
    assert f"- دیسک‌ها — {DISKS}" in text


async def test_answers_from_the_starter_pages_say_so(starter: Client) -> None:
    for tool, arguments in (
        ("search_docs", {"query": "دیسک"}),
        ("read_page", {"url": DISKS}),
        ("platform_docs", {"platform": "node"}),
        ("diagnose_log", {"log": "npm ERR! code ERESOLVE"}),
        ("validate_liara_json", {"content": "{}"}),
    ):
        answer = await starter.call_tool(tool, arguments)
        text = text_of(answer)
        assert "Corpus: starter pages" in text
        assert f"Built {datetime.now(UTC).date().isoformat()} (today)" in text
        assert answer.meta
        assert answer.meta["set"] == "liara"
        assert answer.meta["state"] == "starter"
        assert str(answer.meta["revision"]).startswith("starter-")
        if "<docs " in text:
            assert f'rev="{answer.meta["revision"]}"' in text


async def test_answers_from_fetched_pages_say_so(official: Client) -> None:
    answer = await official.call_tool("search_docs", {"query": "دیسک"})
    assert "Corpus: official Liara docs" in text_of(answer)
    assert "State: fresh" in text_of(answer)
    assert answer.meta
    assert answer.meta["corpus"] == "official"


async def test_a_short_page_is_returned_whole(official: Client) -> None:
    text = await ask(official, "read_page", url=DISKS)
    assert PAGES["paas/disks/about"].strip() in text
    assert "end of the page" in text


async def test_a_long_page_is_read_in_slices_that_join_to_the_page(official: Client) -> None:
    offset, seen = 0, ""
    for _ in range(50):
        text = await ask(official, "read_page", url="/paas/long", offset=offset)
        assert len(text) <= 8000
        seen += re.sub(r"^Sections: .*\n", "", text[text.index("/paas/long/\n") :], flags=re.M)
        more = re.search(r"offset=(\d+)\)", text)
        if more is None:
            break
        offset = int(more[1])
    assert "end of the page" in text
    assert re.findall(r"سطر \d+-\d+ ", seen) == re.findall(r"سطر \d+-\d+ ", LONG_PAGE)


async def test_links_that_grow_as_they_become_absolute_keep_the_cap(official: Client) -> None:
    text = await ask(official, "read_page", url="/paas/links")
    assert 6000 < len(text) <= 8000
    assert f"[]({URL}paas/links/a)" in text
    assert re.search(r"offset=[1-9]\d*\)", text)


async def test_a_section_is_read_by_heading_or_by_the_anchor_of_the_url(official: Client) -> None:
    by_heading = await ask(official, "read_page", url="/paas/long", section="بخش 7")
    by_anchor = await ask(official, "read_page", url=f"{URL}paas/long/#بخش-7")
    assert by_heading == by_anchor
    assert set(re.findall(r"سطر (\d+)-", by_heading)) == {"7"}


async def test_the_url_of_a_citation_can_be_read(starter: Client) -> None:
    for _, url in citations(await ask(starter, "search_docs", query="گواهی SSL دامنه", k=8)):
        assert url.split("#")[0] in await ask(starter, "read_page", url=url)


async def test_an_unknown_url_gets_the_nearest_ones(official: Client) -> None:
    text = await refused(official, "read_page", url=f"{URL}paas/disk/about")
    assert f"- دیسک‌ها — {DISKS}\n" in text
    assert text.index(DISKS) < text.index("دامنه")


async def test_an_unknown_section_gets_the_headings_of_the_page(official: Client) -> None:
    assert "ساخت دیسک" in await refused(official, "read_page", url=DISKS, section="قیمت")


@pytest.mark.parametrize(
    "url", ["../../etc/passwd", "/etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "file:///etc/passwd"]
)
async def test_a_path_of_the_machine_is_no_page(official: Client, url: str) -> None:
    text = await refused(official, "read_page", url=url)
    assert "root:" not in text
    assert "No page of this documentation" in text


async def test_an_offset_behind_the_end_is_refused(official: Client) -> None:
    assert "characters" in await refused(official, "read_page", url=DISKS, offset=10**9)


async def test_missing_and_ill_typed_arguments_get_one_plain_sentence(official: Client) -> None:
    for arguments in ({}, {"query": ["a"]}, {"query": "دیسک", "k": "many"}):
        text = text_of(await official.call_tool("search_docs", arguments))
        assert "\n" not in text
        assert "pydantic" not in text
        assert "Error executing" not in text


async def test_the_corpus_resource_describes_the_index(starter: Client, official: Client) -> None:
    for client, kind in ((starter, "starter"), (official, "official")):
        (content,) = (await client.read_resource("liara://corpus")).contents
        facts = json.loads(content.text)  # type: ignore[union-attr]
        assert facts["corpus"] == kind
        assert facts["chunks"] >= facts["pages"] > 0
        assert facts["languages"]["fa"] > 0
        assert facts["built_age_days"] == 0
        assert facts["source"] is None  # a folder of this machine


async def test_the_prompts_name_the_tools_to_call(official: Client) -> None:
    names = {prompt.name for prompt in (await official.list_prompts()).prompts}
    assert names == {"deploy_to_liara", "explain_failed_deploy"}
    prompt = await official.get_prompt("deploy_to_liara", {"platform": "nestjs"})
    text = prompt.messages[0].content.text  # type: ignore[union-attr]
    assert 'platform_docs with platform "node"' in text
    assert "validate_liara_json" in text
    prompt = await official.get_prompt(
        "explain_failed_deploy", {"log": "npm ERR! token=abcdef123456 </docs>"}
    )
    text = prompt.messages[0].content.text  # type: ignore[union-attr]
    assert "diagnose_log" in text
    assert "abcdef123456" not in text
    assert text.count("</docs>") == 1


async def test_platforms_and_sets_are_completed(official: Client) -> None:
    prompt = PromptReference(type="ref/prompt", name="deploy_to_liara")
    found = await official.complete(prompt, {"name": "platform", "value": "fast"})
    assert set(found.completion.values) == {"node", "python"}
    template = ResourceTemplateReference(type="ref/resource", uri="docs://{docs}/{+path}")
    assert (await official.complete(template, {"name": "docs", "value": "li"})).completion.values \
        == ["liara"]  # fmt: skip
