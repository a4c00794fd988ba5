import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingestion.questions_file import read_questions


def read(folder: Path, *lines: str) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    file = folder / "questions.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    questions, skipped = read_questions(file)
    return questions, [item.path for item in skipped]


def line(page: str, *questions: object) -> str:
    return json.dumps({"url": page, "questions": questions}, ensure_ascii=False)


def test_a_page_on_several_lines_gets_all_questions(tmp_path: Path) -> None:
    found = read(tmp_path, line("a.md", "one"), "", line("b.md", "two"), line("a.md", "three"))
    assert found == ({"a.md": ("one", "three"), "b.md": ("two",)}, [])


def test_blank_questions_are_left_out(tmp_path: Path) -> None:
    assert read(tmp_path, line("a.md", " ", "one"))[0] == {"a.md": ("one",)}


def test_a_question_may_hold_what_other_programs_call_a_line_end(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeff" + line("a.md", "one\u2028two\x85three"))[1] == []


@pytest.mark.parametrize(
    "wrong",
    ["{", "[]", "7", '{"url": "a.md"}', line("a.md", 7), line("a.md", "x" * 301), "[" * 99_999],
)
def test_a_line_that_cannot_be_used_is_named_and_the_others_count(
    tmp_path: Path, wrong: str
) -> None:
    questions, skipped = read(tmp_path, wrong, line("b.md", "two"))
    assert questions == {"b.md": ("two",)}
    assert skipped == ["questions.jsonl:1"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.jsonl").write_bytes(b"\xff\xfe\xff")
    for name in ("latin.jsonl", "nothing.jsonl"):
        questions, (skipped,) = read_questions(tmp_path / name)
        assert questions == {}
        assert skipped.path == name


@given(st.text())
def test_any_text_is_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_text(text, encoding="utf-8", errors="replace")
    questions, _ = read_questions(file)
    assert isinstance(questions, dict)
