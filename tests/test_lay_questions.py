from hypothesis import given
from hypothesis import strategies as st

from app.evaluation.lay_questions import problems, product_names

PAGE, OTHER = "https://docs.example.com/node/disk/", "https://docs.example.com/php/disk/"
GOOD = [
    "my uploads are gone after a release",
    "عکس‌ها بعد از آپدیت پاک میشن",
    "keep files between two deployments",
    "axha miparan vaghti dobare deploy mikonam",
    "where do I store what people send me",
]


def faults(questions: dict[str, list[str]], **options: object) -> str:
    known = {"known_pages": [PAGE], **options}
    return "\n".join(problems(questions, **known))  # type: ignore[arg-type]


def test_good_questions_have_no_fault() -> None:
    assert faults({PAGE: GOOD}) == ""


def test_an_unknown_page_and_a_page_without_questions_are_named() -> None:
    found = faults({OTHER: GOOD})
    assert f"{OTHER}: no such page" in found
    assert f"{PAGE}: it has no questions" in found


def test_a_page_without_text_needs_no_questions() -> None:
    assert faults({}, empty_pages=[PAGE]) == ""


def test_too_few_too_short_and_too_long_are_found() -> None:
    found = faults({PAGE: ["short", "x" * 200]})
    assert "2 questions" in found
    assert "5 characters" in found
    assert "200 characters" in found


def test_a_duplicate_on_another_page_is_found_in_any_spelling() -> None:
    other = [*GOOD[1:], "My uploads are GONE after a release"]
    found = faults({PAGE: GOOD, OTHER: other}, known_pages=[PAGE, OTHER])
    assert "also asked for" in found


def test_a_template_with_names_swapped_is_found() -> None:
    pages = [f"https://docs.example.com/{name}/disk/" for name in ("node", "php", "go", "vue")]
    questions = {
        page: [*GOOD[:4], f"how do I keep files in {page.split('/')[3]}"] for page in pages
    }
    found = faults(questions, known_pages=pages, names={"node", "php", "go", "vue"})
    assert "share a pattern" in found
    assert "how do i keep files in …" in found


def test_a_question_of_an_evaluation_set_is_found() -> None:
    found = faults({PAGE: GOOD}, judged=["My uploads are gone after release!"])
    assert "nearly the same" in found
    assert faults({PAGE: GOOD}, judged=["uploads vanish, what now"]) == ""


def test_a_line_of_the_docs_is_found() -> None:
    line = "Keep files between two deployments with a persistent disk."
    questions = {PAGE: [*GOOD[:4], line.rstrip(".")]}
    assert "a line of the docs" in faults(questions, corpus=[f"# Title\n- {line}\n"])


def test_names_come_from_twin_folders_in_both_scripts() -> None:
    pages = [
        f"https://docs.example.com/{name}/{page}/"
        for name in ("node", "django")
        for page in ("disk", "env", "logs")
    ]
    assert product_names(pages, [["جنگو", "django"], ["disk", "دیسک"]]) == {
        "node",
        "django",
        "جنگو",
    }


@given(st.dictionaries(st.text(), st.lists(st.text())))
def test_any_file_can_be_checked(questions: dict[str, list[str]]) -> None:
    assert isinstance(faults(questions), str)
