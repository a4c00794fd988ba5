import json
from pathlib import Path

import pytest

from app.errors import InvalidArgumentError
from app.evaluation.baseline import BaselineSearch
from app.evaluation.evaluate import evaluate
from app.evaluation.judged import JudgedQuestion, page_key, read_judged
from app.index.snapshot import SearchIndex
from tests.retrieval.sets import index_of

PAGES = {
    "disk.md": "# Disks\n\nA disk keeps files after a restart.\n",
    "domain.md": "# Domains\n\nAdd a record at the registrar, then press verify.\n",
    "backup.md": "# Backups\n\nThe database is copied every night.\n",
}


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    return index_of(PAGES)


def question(query: str, *gold: str) -> JudgedQuestion:
    return JudgedQuestion("q1", query, "plain", "en", gold)


def report(index: SearchIndex, *questions: JudgedQuestion, **options: object) -> str:
    return "\n".join(evaluate(index, questions, **options))  # type: ignore[arg-type]


def test_found_and_missed_questions_are_told_apart(index: SearchIndex) -> None:
    shown = report(
        index, question("registrar", "domain.md"), question("registrar", "disk.md"), misses=True
    )
    assert "ALL               2  0.500" in shown
    assert "- q1 [plain] rank None: registrar" in shown


def test_questions_without_a_right_page_are_counted_as_refused(index: SearchIndex) -> None:
    shown = report(index, question("bake a chocolate cake"), question("registrar", "domain.md"))
    assert "unanswerable: 1 of 1 said to match nothing well" in shown
    assert "answerable: 0 of 1" in shown


def test_a_part_can_be_left_out_beside(index: SearchIndex) -> None:
    shown = report(index, question("registrar", "domain.md"), without={"words", "grams"})
    assert "ours minus without" in shown
    with pytest.raises(InvalidArgumentError, match="No part is called wrods"):
        report(index, question("registrar", "domain.md"), without={"wrods"})


def test_the_baseline_is_shown_beside(index: SearchIndex) -> None:
    assert "ours minus baseline" in report(index, question("registrar", "domain.md"), baseline=True)


def test_no_question_is_refused(index: SearchIndex) -> None:
    with pytest.raises(InvalidArgumentError):
        report(index)


def test_the_baseline_finds_a_page_by_its_words() -> None:
    many = PAGES | {f"n{n}.md": f"# Note {n}\n\nA kettle whistles {n} times.\n" for n in range(9)}
    assert BaselineSearch(index_of(many)).pages("registrar record", 2)[0] == "domain.md"


def test_judged_questions_are_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "judged.jsonl"
    rows = [{"id": "a", "query": "one\u2028line", "gold": ["https://d.example.com/A/#x"]},
            {"query": "x", "gold": []}]  # fmt: skip
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    file.write_text("\ufeff" + "\n\n".join(lines) + "\n", encoding="utf-8")
    first, second = read_judged(file)
    assert (first.query, first.gold) == ("one\u2028line", ("https://d.example.com/a",))
    assert (second.id, second.style, second.gold) == ("3", "-", ())


@pytest.mark.parametrize("line", ["{", "[]", '{"query": "x"}', '{"gold": []}', "7"])
def test_a_line_that_is_no_judged_question_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "judged.jsonl"
    file.write_text(line, encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=r"judged\.jsonl:1"):
        read_judged(file)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="nothing"):
        read_judged(tmp_path / "nothing.jsonl")


def test_two_spellings_of_a_page_have_one_key() -> None:
    assert page_key("https://D.example.com/a/#b") == page_key("https://d.example.com/a")
