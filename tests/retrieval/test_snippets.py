from hypothesis import given
from hypothesis import strategies as st

from app.index.analyzer import tokenize
from app.retrieval.fences import open_fence
from app.retrieval.snippets import snippet

LINES = st.lists(
    st.sampled_from(
        [
            "```json",
            "```",
            "~~~",
            '{"port": 3000}',
            "برای ساخت دیسک از دستور زیر استفاده کنید. سپس ادامه دهید.",
            "a disk keeps files " * 20,
            "",
            "- item with `code`",
            "x" * 700,
        ]
    ),
    max_size=40,
)


@given(LINES, st.integers(200, 600))
def test_a_snippet_fits_and_has_balanced_fences(lines: list[str], max_chars: int) -> None:
    text = "\n".join(lines)
    shown = snippet(text, frozenset(tokenize("disk port")), max_chars)
    assert len(shown) <= max_chars
    if open_fence(text.splitlines()) is None:
        assert open_fence(shown.splitlines()) is None


def test_a_snippet_is_cut_around_the_match() -> None:
    text = "\n".join(
        [*["nothing to see here"] * 60, "the needle is in this line", *["hay and more hay"] * 60]
    )
    shown = snippet(text, frozenset(tokenize("needle")))
    assert "the needle is in this line" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_short_chunk_is_shown_whole() -> None:
    assert snippet("one\ntwo", frozenset()) == "one\ntwo"


def test_a_reopened_fence_keeps_its_language() -> None:
    text = "\n".join(
        [
            "```json",
            *['"key": "value",'] * 60,
            '"needle": 1',
            *['"another key": "another value",'] * 60,
            "```",
        ]
    )
    shown = snippet(text, frozenset(tokenize("needle")))
    assert shown.splitlines()[1] == "```json"
    assert shown.splitlines()[-2] == "```"
