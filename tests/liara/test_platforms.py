import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidArgumentError, UnknownPlatformError
from app.liara.platforms import PLATFORMS, alias_note, resolve_platform

ROLES = {
    "getting_started",
    "deploy",
    "environment",
    "disk",
    "domain",
    "database",
    "troubleshooting",
}
PAGE = re.compile(r"https://docs\.liara\.ir/[a-z0-9/-]+/")


def test_there_are_fourteen_platforms_each_with_pages_for_every_role():
    assert len(PLATFORMS) == 14
    for platform in PLATFORMS.values():
        assert set(platform.pages) == ROLES
        for urls in platform.pages.values():
            assert urls
            assert len(set(urls)) == len(urls)
            assert all(PAGE.fullmatch(url) for url in urls)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("nodejs", "node"),
        ("Node.js", "node"),
        ("nest", "node"),
        ("Express", "node"),
        ("next.js", "next"),
        ("NEXTJS", "next"),
        (".net", "dotnet"),
        ("ASP.NET Core", "dotnet"),
        ("c#", "dotnet"),
        ("golang", "go"),
        ("FastAPI", "python"),
        ("vite", "vue"),
        ("wordpress", "php"),
        ("html", "static"),
        ("Dockerfile", "docker"),
        ("  django\n", "django"),
        ("لاراول", "laravel"),
        ("ري‌اكت", "react"),
        ("دات نت", "dotnet"),
    ],
)
def test_an_alias_is_understood_whatever_its_spelling(typed: str, name: str):
    assert resolve_platform(typed).name == name


def test_every_alias_leads_to_its_own_platform():
    for platform in PLATFORMS.values():
        for alias in (platform.name, platform.title, *platform.aliases):
            assert resolve_platform(alias) is platform


def test_an_unknown_platform_is_answered_with_the_nearest_and_all_names():
    with pytest.raises(UnknownPlatformError) as caught:
        resolve_platform("pyhton")
    message = str(caught.value)
    assert "Did you mean python" in message
    assert all(name in message for name in PLATFORMS)
    assert isinstance(caught.value, InvalidArgumentError)


def test_a_word_like_no_platform_gets_no_guess():
    with pytest.raises(UnknownPlatformError, match="no platform") as caught:
        resolve_platform("zzzzzzzz")
    assert "Did you mean" not in str(caught.value)


def _answer(name: str) -> str:
    try:
        return resolve_platform(name).name
    except UnknownPlatformError as error:
        return str(error)


@given(st.text(alphabet=st.characters(), max_size=500))
def test_any_name_is_resolved_or_refused_in_a_short_message(name: str):
    answer = _answer(name)
    assert answer in PLATFORMS or "The platforms are" in answer
    assert len(answer.encode("utf-8")) < 1_200


def test_wordpress_carries_a_note_with_a_page_and_node_does_not():
    note = alias_note("WordPress")
    assert note is not None
    assert PAGE.fullmatch(note.page)
    assert alias_note("node") is None


def test_ports_follow_the_cli():
    ports = {name: platform.default_port for name, platform in PLATFORMS.items()}
    assert ports["next"] == 3000
    assert ports["django"] == ports["laravel"] == ports["static"] == 80
    assert ports["node"] is ports["docker"] is ports["go"] is ports["dotnet"] is None
