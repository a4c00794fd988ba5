"""platform_docs, diagnose_log and validate_liara_json, called by a real client."""

import json
import re

import pytest
from mcp import Client

from app.liara.manifest_reference import liara_json_reference
from app.liara.platforms import PLATFORMS
from app.server.rendering import MAX_ANSWER_CHARS
from tests.server.liara_pages import (
    URL,
    ask,
    citations,
    refused,
)

pytestmark = pytest.mark.anyio

NEEDS = [
    "فایل آپلودی کاربران",
    "PostgreSQL",
    "Redis",
    "دامنه",
    "cron job",
    "SSL",
    "متغیر محیطی",
    "backup",
    "websocket",
    "لاگ",
]
PAGES = {
    "paas/nodejs/getting-started": "# شروع به کار NodeJS\n\nبرنامهٔ NodeJS را بسازید.\n",
    "paas/nodejs/how-tos/deploy-app": "# استقرار NodeJS\n\n" + "متن راهنما دربارهٔ استقرار. " * 400,
    "paas/nodejs/how-tos/use-disk": "# دیسک در NodeJS\n\nدیسک را وصل کنید.\n",
    "paas/nodejs/how-tos/own-page": "# صفحه‌ای دیگر\n\nنکته‌ای دربارهٔ NodeJS.\n",
    "dbaas/postgresql/quick-setup": "# PostgreSQL\n\nراه‌اندازی PostgreSQL.\n",
}


@pytest.mark.parametrize("platform", list(PLATFORMS))
async def test_a_guide_fits_and_holds_the_reference_and_every_need(
    starter: Client, platform: str
) -> None:
    text = await ask(starter, "platform_docs", platform=platform, needs=NEEDS)
    assert len(text) <= MAX_ANSWER_CHARS
    assert "answer cut" not in text
    for key in liara_json_reference(platform):
        name = re.sub(r'^\$\.|^\$\["|"\]$', "", key.json_path)
        assert f"{name} (" in text or f"{name}: " in text, name
    for need in NEEDS:
        assert f"Need: {need}\n" in text
    assert PLATFORMS[platform].docs_prefix in text
    assert len(citations(text)) >= len(NEEDS)


async def test_a_guide_without_needs_gives_its_room_to_the_pages(starter: Client) -> None:
    text = await ask(starter, "platform_docs", platform="django")
    assert "Need:" not in text
    assert f"{URL}paas/django/how-tos/deploy-app/" in text
    assert 15_000 < len(text) <= MAX_ANSWER_CHARS


async def test_missing_pages_are_left_out_and_the_others_of_the_platform_named(
    official: Client,
) -> None:
    text = await ask(
        official, "platform_docs", platform="express", needs=["پایگاه داده PostgreSQL"]
    )
    shown = set(re.findall(rf"{URL}[\w/-]+/", text[text.index("<docs ") :]))
    assert shown == {f"{URL}{path}/" for path in PAGES}
    assert "More pages of NodeJS:\n- صفحه‌ای دیگر" in text
    assert "Troubleshooting" not in text


async def test_pages_of_other_platforms_come_after_those_of_the_platform(starter: Client) -> None:
    text = await ask(starter, "platform_docs", platform="node", needs=["PostgreSQL"])
    found = citations(text[text.index("Need: PostgreSQL") :])
    assert found[0][1].startswith(f"{URL}dbaas/postgresql/how-tos/connect-via-platform/nodejs/")
    assert "django" not in found[1][1]


async def test_needs_beyond_ten_are_dropped_and_named(official: Client) -> None:
    needs = [f"need {number}" for number in range(12)]
    text = await ask(official, "platform_docs", platform="node", needs=needs)
    assert "Dropped: need 10; need 11." in text
    assert "Need: need 9\n" in text
    assert "Need: need 10" not in text


async def test_a_flood_of_needs_is_answered_for_the_first_ten(official: Client) -> None:
    # Cleaned one by one on the event loop they held up every other client for seconds.
    needs = [f"n{number}" for number in range(50_000)] + ["<d" * 200_000]
    text = await ask(official, "platform_docs", platform="node", needs=needs)
    assert "Dropped: n10; n11; " in text
    assert "and 49981 more" in text


async def test_a_need_of_more_than_80_characters_is_cut(official: Client) -> None:
    text = await ask(official, "platform_docs", platform="node", needs=["د" * 200])
    assert f"Need: {'د' * 80}\n" in text
    assert "Needs are cut to 80 characters." in text


@pytest.mark.parametrize("needs", [[], ["؟"], "disk, دامنه"])
async def test_odd_needs_are_no_error(official: Client, needs: object) -> None:
    await ask(official, "platform_docs", platform="node", needs=needs)


async def test_an_alias_is_explained_and_an_unknown_platform_refused(official: Client) -> None:
    text = await ask(official, "platform_docs", platform="nextjs")
    assert '"platform": "next"' in text
    text = await refused(official, "platform_docs", platform="cobol")
    assert all(name in text for name in PLATFORMS)


async def test_a_log_gets_signature_class_fix_and_pages(starter: Client) -> None:
    log = "\n".join(
        [
            "2026-11-30T10:00:00Z > npm ci",
            "npm ERR! code ERESOLVE",
            "npm ERR! ERESOLVE unable to resolve dependency tree",
            "npm ERR! token=abcdefghijkl0123456789",
            "Error: build failed",
        ]
    )
    text = await ask(starter, "diagnose_log", log=log)
    assert re.search(r"^Signature: .*ERESOLVE", text, re.M)
    assert re.search(r"^Class: npm_peer_conflict \(", text, re.M)
    assert "Platform: node" in text
    assert re.search(r"^What usually fixes it: \S", text, re.M)
    assert re.search(r"^راه‌حل معمول: \S", text, re.M)
    assert citations(text)[0][1].startswith(f"{URL}paas/nodejs/how-tos/deploy-app/")
    assert "abcdefghijkl0123456789" not in text


async def test_an_unknown_error_is_said_to_be_unknown_and_searched(starter: Client) -> None:
    text = await ask(starter, "diagnose_log", log="Error: PostgreSQL wobbled in the flux")
    assert "Class: unknown" in text
    assert citations(text)


async def test_a_log_without_an_error_gets_no_pages(starter: Client) -> None:
    text = await ask(starter, "diagnose_log", log="build finished\nserver is listening\n")
    assert "shows no error" in text
    assert citations(text) == []


async def test_of_a_long_log_the_end_counts(starter: Client) -> None:
    log = (
        "npm ERR! code ERESOLVE\n" + "fine\n" * 10_000 + "ModuleNotFoundError: No module named 'x'"
    )
    text = await ask(starter, "diagnose_log", log=log)
    assert "No module named" in text
    assert "ERESOLVE" not in text
    assert "Only the end of the log was read" in text


async def test_an_empty_log_or_file_is_refused(starter: Client) -> None:
    assert "empty" in await refused(starter, "diagnose_log", log=" \n")
    assert "empty" in await refused(starter, "validate_liara_json", content=" \n")


async def test_a_sound_file_gets_a_yes_and_what_will_happen(starter: Client) -> None:
    text = await ask(
        starter, "validate_liara_json", content='{"app": "shop", "platform": "node", "port": 3000}'
    )
    assert text.startswith("This liara.json is valid")
    assert "On deploy:" in text


async def test_each_fault_gets_its_path_what_is_allowed_and_its_page(starter: Client) -> None:
    content = '{"platform": "node", "port": 99999, "healthcheck": {}}'
    text = await ask(starter, "validate_liara_json", content=content)
    assert "not valid" in text
    assert re.search(rf"^- error at \$\.port: .* Allowed: .* Page: {URL}", text, re.M)
    assert re.search(r"^- (?:error|warning) at \$\.healthcheck: .*healthCheck", text, re.M)


async def test_a_syntax_error_gets_its_line_and_column(starter: Client) -> None:
    text = await ask(starter, "validate_liara_json", content='{\n  "platform": "node",\n}')
    assert re.search(r"line 2, column \d+", text)


async def test_a_file_sent_as_an_object_is_checked_as_well(starter: Client) -> None:
    text = await ask(starter, "validate_liara_json", content={"platform": "node", "port": 3000})
    assert text.startswith("This liara.json is valid")


async def test_a_file_with_very_many_faults_keeps_the_cap(starter: Client) -> None:
    keys = {f"key{'x' * 60}{number}": 1 for number in range(120)} | {"platform": "laravel"}
    text = await ask(starter, "validate_liara_json", content=json.dumps(keys))
    assert len(text) <= MAX_ANSWER_CHARS
    assert "More was found" in text


async def test_a_file_that_is_too_long_is_refused(starter: Client) -> None:
    assert "20000" in await refused(starter, "validate_liara_json", content=" " * 20_000 + "{}")
