import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from app.errors import UnusableFileError
from app.ingestion.chunker import MERGE_ROOM, MIN_LETTERS, chunk_document
from app.ingestion.markdown import parse_document
from app.models import Chunk, Document

PROSE = "Each disk belongs to one app and keeps its files. "


def document_of(text: str, path: str = "page.md") -> Document:
    return parse_document(path, text.encode("utf-8"))


def chunks_of(text: str, max_chars: int = 1500) -> tuple[Chunk, ...]:
    return chunk_document(document_of(text), max_chars)


def unclosed_fences(text: str) -> list[str]:
    """Return the fences of a text that a CommonMark parser closes only at the end of the text."""
    lines = text.split("\n")
    unclosed = []
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "fence" and token.map is not None:
            last = lines[min(token.map[1], len(lines)) - 1].lstrip(" \t>").rstrip()
            if token.map[1] - token.map[0] < 2 or not last.startswith(token.markup):
                unclosed.append(token.content)
    return unclosed


def letters(text: str) -> int:
    return sum(char.isalnum() for char in text)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def test_each_section_is_a_chunk_with_its_place() -> None:
    first, second = chunks_of(f"# Disks\n\n{PROSE}\n\n## Create a disk\n\n{PROSE}\n{PROSE}\n")

    assert (first.title, first.heading_path, first.anchor) == ("Disks", (), "")
    assert (second.heading_path, second.anchor) == (("Create a disk",), "create-a-disk")
    assert (first.start_line, first.end_line) == (3, 3)
    assert (second.start_line, second.end_line) == (7, 8)
    assert [(chunk.section, chunk.part) for chunk in (first, second)] == [(0, 0), (1, 0)]
    assert second.text == f"{PROSE}\n{PROSE}"


def test_a_long_section_is_cut_between_paragraphs_in_order() -> None:
    paragraphs = [f"Paragraph {number}: {PROSE * 5}".strip() for number in range(12)]

    chunks = chunks_of("# T\n\n" + "\n\n".join(paragraphs), 700)

    assert [chunk.part for chunk in chunks] == list(range(len(chunks)))
    assert "\n\n".join(chunk.text for chunk in chunks).split("\n\n") == paragraphs


def test_a_long_paragraph_is_cut_after_a_sentence() -> None:
    chunks = chunks_of("# T\n\n" + PROSE * 40, 500)

    assert len(chunks) > 3
    assert all(chunk.text.endswith("files.") for chunk in chunks)


def test_chinese_without_spaces_is_cut_after_a_sentence() -> None:
    chunks = chunks_of("# T\n\n" + "每个磁盘都属于一个应用程序并保存它的文件。" * 60, 300)

    assert len(chunks) > 3
    assert all(chunk.text.endswith("。") for chunk in chunks)


def test_a_line_without_spaces_is_cut_at_twice_the_limit() -> None:
    chunks = chunks_of("# T\n\n" + "x" * 1_000_000, 500)

    assert max(len(chunk.text) for chunk in chunks) <= 1000
    assert "".join(chunk.text for chunk in chunks) == "x" * 1_000_000


def test_a_long_fence_is_closed_and_reopened_with_its_info_string() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(200))

    chunks = chunks_of(f"# T\n\n{PROSE}\n\n```python title=x\n{code}\n```\n\n{PROSE}\n", 600)

    with_code = [chunk.text for chunk in chunks if "line_" in chunk.text]
    assert len(with_code) > 5
    assert all(text.count("```python title=x\n") == 1 for text in with_code)
    assert not any(unclosed_fences(chunk.text) for chunk in chunks)


@pytest.mark.parametrize(
    ("opening", "inside", "closing"),
    [("- ~~~sh", "  ", "  ~~~"), ("> ```sh", "> ", "> ```"), ("1. ````md", "   ", "   ````")],
)
def test_fences_in_lists_and_quotes_stay_balanced(opening: str, inside: str, closing: str) -> None:
    code = "\n".join(f"{inside}echo number {number}" for number in range(100))

    chunks = chunks_of(f"# T\n\n{opening}\n{code}\n{closing}\n", 400)

    assert len(chunks) > 4
    assert not any(unclosed_fences(chunk.text) for chunk in chunks)


def test_a_long_table_repeats_its_header() -> None:
    rows = "\n".join(f"| PORT_{number} | the port of service {number} |" for number in range(80))

    chunks = chunks_of(f"# T\n\n{PROSE}\n\n| Name | Meaning |\n|---|---|\n{rows}\n", 600)

    with_rows = [chunk.text for chunk in chunks if "PORT_" in chunk.text]
    assert len(with_rows) > 4
    assert all("| Name | Meaning |\n|---|---|\n| PORT_" in text for text in with_rows)


def test_a_lead_in_moves_on_with_its_list() -> None:
    items = "\n".join(f"- step {number} of the way" for number in range(20))

    chunks = chunks_of(f"# T\n\n{PROSE * 8}\n\nDo these steps:\n\n{items}\n", 800)

    assert [chunk.text.startswith("Do these steps:\n\n- step 0") for chunk in chunks] == [
        False,
        True,
    ]


def test_a_long_list_is_cut_between_items() -> None:
    items = "\n".join(
        f"- item {number} that says\n  something on two lines" for number in range(60)
    )

    chunks = chunks_of(f"# T\n\n{items}\n", 500)

    assert len(chunks) > 3
    assert all(chunk.text.startswith("- item") for chunk in chunks)


def test_a_tiny_section_joins_the_sibling_before_it_with_its_heading() -> None:
    (chunk,) = chunks_of(f"# T\n\n## Limits\n\n{PROSE}\n\n## Size\n\n5 GB\n")

    assert chunk.heading_path == ("Limits",)
    assert chunk.text == f"{PROSE.strip()} \n\n## Size\n\n5 GB"
    assert (chunk.start_line, chunk.end_line) == (5, 9)


def test_a_tiny_introduction_joins_its_first_child() -> None:
    (chunk,) = chunks_of(f"# T\n\n## Deploy\n\nTwo ways:\n\n### Console\n\n{PROSE}\n")

    assert chunk.heading_path == ("Deploy", "Console")
    assert chunk.text.startswith("Two ways:\n\nEach disk")


def test_a_lone_heading_joins_a_neighbour_and_is_no_chunk() -> None:
    first, second = chunks_of(f"# T\n\n{PROSE}\n\n## Empty\n\n## Full\n\n{PROSE}\n")

    assert first.text.endswith("## Empty")
    assert second.heading_path == ("Full",)


def test_a_lone_link_is_no_chunk_of_its_own() -> None:
    chunks = chunks_of(
        f"# T\n\n## One\n\n{PROSE}\n\n## Two\n\n[Video](https://media.example.com/a-long-name.mp4)\n"
    )

    assert [chunk.heading_path for chunk in chunks] == [("One",)]


def test_a_document_that_is_all_tiny_is_one_chunk() -> None:
    (chunk,) = chunks_of("# T\n\nhi\n\n## A\n\nb\n\n## C\n\nlonger one\n")

    assert chunk.text == "hi\n\n## A\n\nb\n\n## C\n\nlonger one"


def test_a_parent_heading_is_in_the_path_of_its_children_only() -> None:
    (chunk,) = chunks_of(f"# T\n\n## Parent\n\n### Child\n\n{PROSE}\n")

    assert chunk.heading_path == ("Parent", "Child")
    assert "Parent" not in chunk.text


def test_a_large_changelog_without_headings_is_cut_in_one_pass() -> None:
    entries = "\n".join(f"- fixed issue {number} in the uploader" for number in range(30_000))

    chunks = chunks_of(entries)

    assert chunks[0].start_line == 1
    assert chunks[-1].end_line == 30_000
    assert all(before.end_line + 1 == after.start_line for before, after in pairwise(chunks))


BLOCKS = st.one_of(
    st.sampled_from(
        [
            *(
                "## Head\n",
                "### Sub head\n",
                "```js\nconst a = 1;\n\nconst b = 2;\n```",
                "- a\n- b",
            ),
            *(
                "> quote\n> more",
                "> ```\n> code\n> ```",
                "- item\n  ```sh\n  ls\n  ```\n",
                "```\nopen",
            ),
            *(
                "| a | b |\n|---|---|\n| c | d |\n| e | f |",
                "~~~\n# c\n~~~",
                "For example:",
                "{item}",
            ),
            *(
                "1. one\n2. two",
                "    indented code",
                "Setext\n---",
                "***",
                "<Note>text</Note>",
                "\n",
            ),
            *("- ```\n  x\nleft", "> ~~~\n> y\nleft", "````\n```\n````"),
        ]
    ),
    st.text(alphabet="ab ک۱.。\n", min_size=1, max_size=300),
    st.integers(1, 30).map(lambda count: PROSE * count),
)
DOCUMENTS = st.lists(BLOCKS, min_size=1, max_size=12).map("\n\n".join)
LIMITS = st.integers(240, 900)


def parsed(text: str) -> Document | None:
    try:
        return document_of(text)
    except UnusableFileError:
        return None


@given(DOCUMENTS, LIMITS)
def test_chunks_keep_every_word_of_the_sections(text: str, max_chars: int) -> None:
    document = parsed(text)
    if document is None:
        return
    shown: set[str] = set()
    for chunk in chunk_document(document, max_chars):
        shown |= words(f"{' '.join(chunk.heading_path)} {chunk.text}")
    long_words_are_cut = max((len(word) for word in words(text)), default=0) > max_chars
    expected = {word for section in document.sections for word in words(section.text)}
    assert long_words_are_cut or expected <= shown


@given(DOCUMENTS, LIMITS)
def test_chunk_lines_point_at_the_words_of_the_chunk(text: str, max_chars: int) -> None:
    document = parsed(text)
    if document is None:
        return
    lines = document.text.split("\n")
    chunks = chunk_document(document, max_chars)
    for chunk in chunks:
        source = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        # A table that goes on repeats its header, a fence its opening line, from further up.
        repeated = {"a", "b", "js", "sh"}
        assert words(chunk.text) - repeated <= words(source)
        assert 1 <= chunk.start_line <= chunk.end_line <= len(lines)
    starts = [chunk.start_line for chunk in chunks]
    assert starts == sorted(starts)


@given(DOCUMENTS, LIMITS)
def test_chunks_are_balanced_never_bare_and_within_the_limit(text: str, max_chars: int) -> None:
    document = parsed(text)
    if document is None:
        return
    chunks = chunk_document(document, max_chars)
    for chunk in chunks:
        assert not unclosed_fences(chunk.text), chunk.text
        assert (
            len(chunk.text) <= max_chars or max(map(len, chunk.text.split("\n"))) > max_chars // 2
        )
        assert len(chunk.text) <= 2 * max_chars
        # Long runs of signs without letters are kept where no neighbour has room for them.
        is_wordy = letters(chunk.text) >= MIN_LETTERS or len(chunk.text) > MERGE_ROOM
        assert is_wordy or len(chunks) == 1
