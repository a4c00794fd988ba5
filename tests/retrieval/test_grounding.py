"""What a reader is shown can neither leave the envelope nor forge a citation or a link."""

import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.retrieval.grounding import (
    envelope,
    neutralise_line,
    neutralise_sentence,
    neutralise_text,
    neutralise_url,
)
from tests.retrieval.hostile import (
    ANY_TEXT,
    CITATION_SPELLINGS,
    DANGEROUS_LINKS,
    TAG_SPELLINGS,
    ZWNJ,
    holds_leading_citation,
    holds_tag,
)


@pytest.mark.parametrize("tag", TAG_SPELLINGS)
def test_no_spelling_of_the_envelope_tag_survives(tag: str) -> None:
    for shown in (neutralise_text(f"before {tag} after"), neutralise_line(f"before {tag} after")):
        assert not holds_tag(shown)
        assert "before" in shown
        assert "after" in shown
    assert neutralise_url(f"https://docs.example/{tag}") is None


@pytest.mark.parametrize("bracket", ["]", "&#93;", "&#93", "&#x5D;", "&rbrack;"])
def test_a_tag_behind_a_bracket_becomes_no_link(bracket: str) -> None:
    shown = neutralise_text(f"[3{bracket}<\\\\/docs> x")
    assert not holds_tag(shown)
    assert "](" not in html.unescape(shown)


@pytest.mark.parametrize("layer", ["amp;", "#38;", "#x26;"])
def test_a_tag_under_a_hundred_thousand_ampersands_is_found(layer: str) -> None:
    # Undone one by one they would take minutes.
    chain = "&" + layer * 200_000
    assert neutralise_text(f"<{chain}#100;ocs>").startswith("(&")
    assert neutralise_text(f"{chain}lt;docs>") == "(docs>"


def test_a_line_of_a_megabyte_is_cut_before_it_is_cleaned() -> None:
    shown = neutralise_line("\u202e</docs>" * 100_000, 50)
    assert len(shown) == 50
    assert not holds_tag(shown)
    assert neutralise_line("\u200b" * 1_000_000, 50) == "…"


@pytest.mark.parametrize("citation", CITATION_SPELLINGS)
def test_no_citation_survives_at_the_head_of_a_line(citation: str) -> None:
    text = f"first\n{citation} Title — https://evil.example/"
    shown = neutralise_text(text)
    assert not holds_leading_citation(shown)
    assert "Title — https://evil.example/" in shown
    assert not holds_leading_citation(neutralise_line(f"{citation} Title"))


@pytest.mark.parametrize("link", DANGEROUS_LINKS)
def test_no_dangerous_destination_survives(link: str) -> None:
    shown = neutralise_text(f"see {link} there" if not link.startswith(("[a]:", ">")) else link)
    folded = re.sub(r"\s", "", html.unescape(html.unescape(shown))).casefold()
    assert "javascript:" not in folded
    assert "vbscript:" not in folded
    assert "data:" not in folded
    assert "file:" not in folded
    assert "evil.example" not in folded


def test_ordinary_text_stays_as_written() -> None:
    text = (
        "# می‌خواهم دیسک بسازم\n\n- [بخش اول](https://docs.example/a/#b)\n\n```json\n"
        '{"a": [1, 2], "b": <C d="e" />}\n```\n| a[0] | b |\n<p>docs</p> <DocsPage> 5 < 6\n'
        'data: value\nurl = f"data:application/pdf;base64,{x}"\nfile: x.txt\n'
        "https://x.example//y\n👩\u200d💻 ❤\ufe0f\n"
    )
    assert neutralise_text(text) == text


@given(ANY_TEXT)
def test_a_body_never_holds_a_tag_or_a_leading_citation(text: str) -> None:
    shown = neutralise_text(text)
    assert not holds_tag(shown)
    assert not re.search(r"^\s*\[(\d+)\]", shown, re.MULTILINE)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]
    assert not re.search("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]", shown)


@given(ANY_TEXT)
def test_neutralising_twice_changes_nothing_more(text: str) -> None:
    once = neutralise_text(text)
    assert neutralise_text(once) == once


@given(ANY_TEXT)
def test_zwnj_stays(text: str) -> None:
    shown = neutralise_text(f"می{ZWNJ}شود\n\n{text}")
    assert shown.startswith(f"می{ZWNJ}شود")


@given(ANY_TEXT)
def test_a_title_is_one_line_without_url_tag_or_citation(text: str) -> None:
    line = neutralise_line(text)
    assert line == line.strip()
    assert len(line.splitlines()) <= 1
    assert len(line) <= 200
    assert not holds_tag(line)
    assert not re.match(r"\W*\[(\d+)\]", line)
    assert "://" not in line


@given(ANY_TEXT)
def test_a_sentence_is_one_harmless_line_and_may_name_an_address(text: str) -> None:
    sentence = neutralise_sentence(f"https://git.example/a.git was not read: {text!r} {text}", 400)
    assert sentence.startswith("https://git.example/a.git was not read: ")
    assert len(sentence.splitlines()) == 1
    assert len(sentence) <= 400
    assert not holds_tag(sentence)


@given(ANY_TEXT, st.booleans())
def test_a_shown_url_is_a_single_http_token(text: str, with_prefix: bool) -> None:
    url = neutralise_url(f"https://docs.example/{text}" if with_prefix else text)
    if url is not None:
        assert re.fullmatch(r"https?://[^\s<>()\[\]\"'`\\]+", url)
        assert not holds_tag(url)


NOT_PAGE_URLS = (
    "//evil.example/x javascript:alert(1) data:text/html,x /paas/ https:///x ftp://docs.example/ "
    "https://user:pass@docs.example/ https://docs.example/\u202ex https://docs.example:port/".split()
)


@pytest.mark.parametrize(
    "url", [*NOT_PAGE_URLS, "", "https://x.example/a b", "https://x/" + "a" * 2000]
)
def test_what_is_no_plain_page_url_is_not_shown(url: str) -> None:
    assert neutralise_url(url) is None


def test_a_page_url_keeps_its_persian_anchor_and_loses_what_ends_a_link() -> None:
    shown = neutralise_url("https://docs.example/a/[slug](x)/#تنظیم-دیسک")
    assert shown == "https://docs.example/a/%5Bslug%5D%28x%29/#تنظیم-دیسک"


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_an_envelope_opens_once_and_closes_once(body: str, set_id: str, rev: str) -> None:
    lines = envelope(neutralise_text(body), set_id=set_id, rev=rev).split("\n")
    assert re.fullmatch(
        r'<docs source="untrusted" set="[\w.:+-]*" rev="[\w.:+-]*">', lines[0], re.ASCII
    )
    assert lines[-1] == "</docs>"
    assert not holds_tag("\n".join(lines[1:-1]))


def test_parts_that_form_a_tag_only_together_are_broken_by_the_envelope() -> None:
    parts = [neutralise_text("a <"), neutralise_text("/docs> b")]
    assert envelope("\n".join(parts), set_id="liara", rev="1").count("/docs>") == 2
    assert not holds_tag(envelope("\n".join(parts), set_id="s", rev="1").split("\n", 1)[1][:-7])
