import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.index.acronyms import acronyms, spelled_out
from app.index.analyzer import tokenize
from app.index.transliteration import skeleton, to_english_keys, to_persian_keys
from app.index.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("latin", "persian"),
    [("damane", "دامنه"), ("barname", "برنامه"), ("deploy", "دیپلوی"), ("database", "دیتابیس")],
)
def test_one_word_in_two_scripts_has_one_skeleton(latin: str, persian: str) -> None:
    assert skeleton(latin) == skeleton(persian)


@given(st.text())
def test_a_skeleton_is_found_for_any_text(text: str) -> None:
    assert isinstance(skeleton(text.casefold()), str)


def test_keys_of_the_wrong_layout_are_read() -> None:
    assert to_persian_keys("nldk") == "دمین"
    assert to_english_keys("یخزنثق") == "docker"


@pytest.mark.parametrize(
    ("written", "acronym"),
    [
        ("وی‌پی‌اس", "vps"),
        ("وی‌پی‌اسم", "vps"),
        ("آی‌پی", "ip"),
        ("اس‌اس‌ال", "ssl"),
        ("سی‌دی‌ان‌ها", "cdn"),
        ("دی‌ان‌اس", "dns"),
    ],
)
def test_a_spelled_out_acronym_meets_its_letters(written: str, acronym: str) -> None:
    assert acronym in tokenize(written)


@pytest.mark.parametrize("word", ["می‌شود", "برنامه‌ها", "سی", "اس‌تست", "دیتابیس"])
def test_other_words_are_no_acronyms(word: str) -> None:
    assert acronyms(word) == ()


def test_letter_names_with_spaces_are_joined() -> None:
    assert spelled_out("سرور وی پی اس من".split()) == ["وی‌پی‌اس"]


def test_a_mistyped_word_finds_the_nearest_and_most_frequent() -> None:
    vocabulary = Vocabulary({"دیتابیس": 90, "دیتابیسی": 2, "postgres": 40, "poster": 1, "disk": 5})
    assert vocabulary.nearest("دیتابسی")[0] == ("دیتابیس", 1)
    assert vocabulary.nearest("postgers")[0] == ("postgres", 1)
    assert vocabulary.nearest("dsk") == []


def test_words_of_the_other_script_that_sound_alike() -> None:
    vocabulary = Vocabulary({"دامنه": 20, "domain": 10, "دیسک": 5})
    assert vocabulary.sounding_like("damane") == ["دامنه"]
    assert vocabulary.sounding_like("دامین") == ["domain"]
