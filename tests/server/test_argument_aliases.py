"""Arguments arrive under the tool's own names, whatever a model called them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.argument_aliases import accept_arguments


@pytest.mark.parametrize(
    ("tool", "given_arguments", "accepted"),
    [
        ("search_docs", {"question": "دیسک"}, {"query": "دیسک"}),
        ("search_docs", {"q": "دیسک", "top_k": 3}, {"query": "دیسک", "k": 3}),
        ("search_docs", {"query": "a", "limit": 2}, {"query": "a", "k": 2}),
        ("search_docs", {"query": "a", "n": 2}, {"query": "a", "k": 2}),
        ("search_docs", {"query": "a", "k": None}, {"query": "a"}),
        ("read_page", {"link": "/paas/"}, {"url": "/paas/"}),
        ("read_page", {"page": "/paas/", "heading": "x"}, {"url": "/paas/", "section": "x"}),
        ("platform_docs", {"framework": "vue"}, {"platform": "vue"}),
        (
            "platform_docs",
            {"platform": "vue", "needs": "disk, دامنه؛ redis"},
            {"platform": "vue", "needs": ["disk", "دامنه", "redis"]},
        ),
        (
            "platform_docs",
            {"platform": "vue", "needs": '["a"]'},
            {"platform": "vue", "needs": '["a"]'},
        ),
        ("diagnose_log", {"logs": ["a", "b"]}, {"log": "a\nb"}),
        ("validate_liara_json", {"liara_json": "{}"}, {"content": "{}"}),
        ("ask_docs", {"query": "a", "k": 2}, {"question": "a", "top_k": 2}),
        ("reindex", {"set": "liara"}, {"docs": "liara"}),
        ("unknown_tool", {"a": 1}, {"a": 1}),
    ],
)
def test_other_names_are_understood(
    tool: str, given_arguments: dict[str, object], accepted: dict[str, object]
) -> None:
    assert accept_arguments(tool, given_arguments) == accepted


def test_an_object_for_the_content_of_a_file_is_taken_as_its_json() -> None:
    accepted = accept_arguments("validate_liara_json", {"content": {"platform": "node"}})
    assert json.loads(accepted["content"]) == {"platform": "node"}


@given(
    st.dictionaries(
        st.sampled_from(["query", "k", "question", "q", "top_k", "limit", "x"]), st.integers()
    )
)
def test_the_tools_own_names_always_win_and_nothing_is_made_up(arguments: dict[str, int]) -> None:
    accepted = accept_arguments("search_docs", arguments)
    for name in ("query", "k"):
        if name in arguments:
            assert accepted[name] == arguments[name]
    assert sorted(accepted.values()) == sorted(arguments.values())
