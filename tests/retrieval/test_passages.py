from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.index.snapshot import SearchIndex
from app.ingestion.ingest import ingest
from app.models import DocumentSetSpec, Hit
from app.retrieval.fences import closing_fence
from app.retrieval.passages import GAP, build_passages, cut_at_line, header

LONG_CODE = "\n".join(f"step_{number} = configure(worker={number})" for number in range(120))
GUIDE = f"""# Guide

Intro to the guide, with enough words to be a passage of its own.

## Install

Run the installer.

- first line of a list
- second line of a list

## Long script

Before the code there is a sentence.

```python
{LONG_CODE}
```

After the code there is a sentence as well.
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "guide.md").write_text(GUIDE, encoding="utf-8")
    spec = DocumentSetSpec(id="team", source=str(folder))
    return ingest(spec, tmp_path_factory.mktemp("checkout"))


def hits_of(index: SearchIndex, *numbers: int) -> list[Hit]:
    """Hits in the given order, each better than the next."""
    scores = count(start=-1, step=-1)
    return [Hit(number + 1, index.chunk(number), next(scores) / 1) for number in numbers]


def script_parts(index: SearchIndex) -> list[int]:
    return [n for n in range(len(index)) if index.chunk(n).heading_path == ("Long script",)]


def balanced(text: str) -> bool:
    return closing_fence(text.split("\n")) is None


def test_a_passage_is_the_whole_chunk_with_its_line_breaks_and_headings(index: SearchIndex) -> None:
    install = next(n for n in range(len(index)) if index.chunk(n).heading_path == ("Install",))
    (passage,) = build_passages(index, hits_of(index, install), 8000)
    assert passage.text == index.chunk(install).text
    assert "- first line of a list\n- second line of a list" in passage.text
    assert passage.heading == "Install"
    assert (passage.number, passage.path) == (1, "guide.md")
    lines = GUIDE.split("\n")
    assert "Run the installer." in lines[passage.start_line - 1 : passage.end_line]


def test_the_parts_of_a_long_section_come_back_as_the_file_has_them(index: SearchIndex) -> None:
    parts = script_parts(index)
    assert len(parts) >= 3
    # Worst order first: the file's order must win over the ranking's.
    (passage,) = build_passages(index, hits_of(index, *reversed(parts)), 50_000)
    start = GUIDE.index("Before the code")
    assert passage.text.strip() == GUIDE[start:].strip()
    assert passage.text.count("```") == 2


def test_a_gap_between_parts_is_marked_and_fences_stay_balanced(index: SearchIndex) -> None:
    parts = script_parts(index)
    (passage,) = build_passages(index, hits_of(index, parts[-1], parts[0]), 50_000)
    first, last = index.chunk(parts[0]).text, index.chunk(parts[-1]).text
    assert passage.text == f"{first}\n{GAP}\n{last}"
    assert balanced(passage.text)


def test_better_hits_come_first_into_the_budget(index: SearchIndex) -> None:
    intro = next(n for n in range(len(index)) if "Intro to the guide" in index.chunk(n).text)
    parts = script_parts(index)
    passages = build_passages(index, hits_of(index, parts[0], intro, *parts[1:]), 2200)
    assert passages[0].text.startswith("Before the code")
    assert any("Intro to the guide" in passage.text for passage in passages)


def test_what_does_not_fit_is_cut_at_a_line_break_and_marked(index: SearchIndex) -> None:
    parts = script_parts(index)
    (passage,) = build_passages(index, hits_of(index, parts[1]), 500)
    lines = passage.text.split("\n")
    assert lines[-1] == GAP
    assert balanced(passage.text)
    code = [line for line in lines if line.startswith("step_")]
    assert code
    assert set(code) <= set(LONG_CODE.split("\n"))
    assert passage.end_line < index.chunk(parts[1]).end_line
    assert GUIDE.split("\n")[passage.end_line - 1] == code[-1]


def test_the_best_hit_is_kept_however_small_the_budget(index: SearchIndex) -> None:
    passages = build_passages(index, hits_of(index, *script_parts(index)), 1)
    assert len(passages) == 1
    assert passages[0].text.startswith("Before the code")


def test_no_hits_give_no_passages(index: SearchIndex) -> None:
    assert build_passages(index, [], 8000) == ()


@settings(deadline=None)
@given(order=st.permutations(range(6)), budget=st.integers(500, 9000))
def test_passages_keep_to_the_budget_with_their_headers(
    index: SearchIndex, order: list[int], budget: int
) -> None:
    numbers = [number for number in order if number < len(index)]
    passages = build_passages(index, hits_of(index, *numbers), budget)
    shown = "\n\n".join(f"{header(p.number, p.path, p.heading)}\n{p.text}" for p in passages)
    # A fence that a cut closes may cost its own line.
    assert len(shown) <= budget + 4
    assert [passage.number for passage in passages] == list(range(1, len(passages) + 1))
    assert all(balanced(passage.text) for passage in passages)


LINES = st.lists(
    st.sampled_from(["```", "~~~sh", "~~~", "text of a line", "", "> ```js", "- ```", "x" * 90]),
    max_size=30,
)


@settings(deadline=None)
@given(lines=LINES, limit=st.integers(20, 600))
def test_a_cut_text_is_the_head_of_the_text_with_balanced_fences(
    lines: list[str], limit: int
) -> None:
    text = "\n".join(lines)
    cut = cut_at_line(text, limit)
    if len(text) <= limit:
        assert cut == text
        return
    body = cut.removesuffix(f"\n{GAP}")
    assert body != cut
    head, _, last = body.rpartition("\n")
    assert text.startswith((body, head))
    # Only a line that closes a fence may go beyond the limit.
    assert len(cut) <= limit or closing_fence(head.split("\n")) == last
    assert balanced(body)


def test_a_line_without_breaks_is_cut_between_words() -> None:
    text = "word " * 400
    cut = cut_at_line(text, 300)
    assert len(cut) <= 300
    assert cut.endswith(f"word\n{GAP}")


@pytest.mark.parametrize(
    ("lines", "closing"),
    [
        (["```py", "x"], "```"),
        (["```py", "x", "```"], None),
        (["````", "```", "x"], "````"),
        (["~~~", "```"], "~~~"),
        (["> ```", "> x"], "> ```"),
        (["- ```", "  x"], "  ```"),
        (["```code``` in a line"], None),
        (["```", "```js"], "```"),
    ],
)
def test_the_open_fence_is_known(lines: list[str], closing: str | None) -> None:
    assert closing_fence(lines) == closing
