import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.index.analyzer import expand, grams, split_words, tokenize
from app.index.persian import ZWNJ, normalize_letters, stem

PERSIAN = st.text(
    alphabet="ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیكيةؤئأآ" + ZWNJ + " \u0640\u064e\u0651ABcd123۴٥"
)


@given(st.text() | PERSIAN)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalize_letters(text)
    assert normalize_letters(once) == once


@given(st.text(st.characters(max_codepoint=0x2100)), st.sampled_from(["", "\u3042", "\u1ea1"]))
def test_a_neighbour_from_afar_changes_no_letter(text: str, afar: str) -> None:
    # The neighbour sends the text through the full normalisation, which must agree.
    assert normalize_letters(text) + normalize_letters(afar) == normalize_letters(text + afar)


@given(PERSIAN)
def test_decomposed_and_composed_text_give_the_same_terms(text: str) -> None:
    assert tokenize(unicodedata.normalize("NFD", text)) == tokenize(text)


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("كتابي", "کتابی"),
        ("١٢٣", "123"),
        ("۴۵۶", "456"),
        ("سـلام", "سلام"),
        ("مُدیریَّت", "مدیریت"),
        ("مسئول", "مسیول"),
        ("آپلود", "اپلود"),
        ("\u202bدیسک\u202c\u200f", "دیسک"),
        ("ﻼ", "لا"),
        ("Ｄｏｃｋｅｒ", "Docker"),
    ],
)
def test_one_spelling_for_each_letter_and_digit(typed: str, written: str) -> None:
    assert normalize_letters(typed) == written


def test_zwnj_stays_inside_a_word() -> None:
    assert split_words("می‌خواهم دیتابیس‌ها") == ["می‌خواهم", "دیتابیس‌ها"]


@pytest.mark.parametrize("typed", ["دیتابیس‌ها", "دیتابیسها", "ديتابيس‌ها"])
def test_a_compound_meets_its_joined_and_its_split_spelling(typed: str) -> None:
    indexed = {term.text for term in expand("دیتابیس‌ها")}
    assert indexed & set(tokenize(typed))
    assert "دیتابیس" in indexed


@pytest.mark.parametrize(
    ("identifier", "found_by"),
    [
        ("liara.json", {"liara.json", "liarajson", "liara", "json"}),
        ("healthCheck", {"healthcheck", "health", "check"}),
        ("MCP_ALLOWED_HOSTS", {"mcp_allowed_hosts", "mcp", "allowed", "hosts"}),
        ("0.52.1", {"0.52.1", "52"}),
        ("multi-agent", {"multi-agent", "multiagent", "multi", "agent"}),
        ("HTTPServer", {"httpserver", "http", "server"}),
        ("node18", {"node18", "node", "18"}),
    ],
)
def test_an_identifier_is_found_as_typed_and_by_its_parts(
    identifier: str, found_by: set[str]
) -> None:
    assert found_by <= {term.text for term in expand(identifier)}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("کتابخانه‌هایشان".replace(ZWNJ, ""), "کتابخانه"),
        ("برنامه‌های".replace(ZWNJ, ""), "برنامه"),
        ("سریع‌ترین".replace(ZWNJ, ""), "سریع"),
        ("دیسک", "دیسک"),
        ("ما", "ما"),
    ],
)
def test_persian_endings_are_taken_off(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_unspaced_scripts_are_found_by_characters_and_pairs() -> None:
    assert set(tokenize("数据库")) == {"数据", "据库", "数", "据", "库"}
    assert {"デー", "ータ", "docker"} <= set(tokenize("dockerデータ"))


@given(st.text(min_size=1))
def test_terms_of_a_word_are_distinct_and_not_empty(text: str) -> None:
    for word in split_words(text):
        terms = [term.text for term in expand(word)]
        assert len(terms) == len(set(terms))
        assert all(terms)


def test_grams_know_the_borders_of_a_word() -> None:
    assert grams("disk") == (" dis", "disk", "isk ")
    assert grams("ab") == (" ab ",)
    assert grams("می‌شود") == grams("میشود")
