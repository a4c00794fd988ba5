"""From a URL in any form to a slice of the page, cut at a line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DocumentNotFoundError, InvalidArgumentError
from app.index.snapshot import SearchIndex
from app.ingestion.ingest import ingest
from app.models import DocumentSetSpec
from app.retrieval.pages import (
    absolute_links,
    cut_page,
    find_page,
    find_section,
    nearest_pages,
    page_sections,
    page_text,
)

PREFIX = "https://docs.example.ir/"
DISKS = f"{PREFIX}paas/disks/about/"
PAGES = {
    "paas/disks/about.md": """\
# دیسک‌ها

متن آغازین.

## ساخت دیسک

گام‌ها.

### با CLI

```bash
# not a heading
liara disk:create
```

## حذف دیسک

پایان.
""",
    "paas/disks/resize.md": "# تغییر اندازه\n\nاندازهٔ دیسک.\n",
    "dbaas/redis/about.md": "# Redis\n\nیک پایگاه داده.\n",
    "paas/domains/add.md": "# افزودن دامنه\n\nدامنه را وصل کنید.\n",
}
Build = Callable[[dict[str, str]], SearchIndex]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    def build_index(files: dict[str, str]) -> SearchIndex:
        folder = tmp_path_factory.mktemp("source")
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        spec = DocumentSetSpec(id="liara", source=str(folder), url_prefix=PREFIX)
        return ingest(spec, Path(folder / "unused-checkout"))

    return build_index


def with_link(path: str, text: str) -> str:
    return f"Original link: {PREFIX}{path.removesuffix('.md')}/\n\n{text}"


@pytest.fixture(scope="module")
def index(build: Build) -> SearchIndex:
    return build({f"llms/{path}": with_link(path, text) for path, text in PAGES.items()})


@pytest.mark.parametrize(
    "reference",
    [
        DISKS,
        DISKS.removesuffix("/"),
        f"{DISKS}#ساخت-دیسک",
        f"{DISKS}?x=1#a",
        "http://docs.example.ir/paas/disks/about",
        "HTTPS://Docs.Example.IR/paas/Disks/About/",
        "docs.example.ir/paas/disks/about/",
        "//docs.example.ir/paas/disks/about/",
        f"{PREFIX}paas/disks/about.md",
        f"{PREFIX}llms/paas/disks/about.md",
        f"{PREFIX}paas//disks/about/index.html",
        f"{PREFIX}paas%2Fdisks%2Fabout%2F",
        f"{PREFIX}%70aas/disks/%61bout",
        "/paas/disks/about/",
        "paas/disks/about",
        "/llms/paas/disks/about.md",
        "public/llms/paas/disks/about.md",
        "llms/paas/disks/about.md",
        f"<{DISKS}>",
        f" `{DISKS}`. ",
        f"[دیسک‌ها]({DISKS})",
    ],
)
def test_a_page_is_found_by_every_form_of_its_url(index: SearchIndex, reference: str) -> None:
    page, _ = find_page(index, reference)
    assert page.url == DISKS
    assert page.title == "دیسک‌ها"


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "/",
        PREFIX,
        "https://evil.example/paas/disks/about/",
        "ftp://docs.example.ir/paas/disks/about/",
        "javascript:alert(1)",
        "/paas/disks/",
        "../paas/disks/about",
        "/paas/../paas/disks/about",
        "%2e%2e/paas/disks/about",
        "/etc/passwd",
        "file:///etc/passwd",
        "http://[::1",
        "\x00",
        "a" * 5000,
    ],
)
def test_anything_else_is_no_page(index: SearchIndex, reference: str) -> None:
    with pytest.raises(DocumentNotFoundError):
        find_page(index, reference)
    assert len(nearest_pages(index, reference)) <= 5


@given(st.text(max_size=40))
def test_any_text_finds_a_page_of_the_index_or_none(index: SearchIndex, reference: str) -> None:
    try:
        page, _ = find_page(index, reference)
    except DocumentNotFoundError:
        return
    assert page.key in index.pages


def test_an_anchor_is_decoded(index: SearchIndex) -> None:
    assert find_page(index, f"{DISKS}#%D8%AF%DB%8C")[1] == "دی"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (f"{PREFIX}paas/disk/about/", DISKS),
        (f"{PREFIX}paas/disks/", DISKS),
        ("/databases/redis", f"{PREFIX}dbaas/redis/about/"),
        ("افزودن دامنه", f"{PREFIX}paas/domains/add/"),
        ("https://other.example/paas/domain/add", f"{PREFIX}paas/domains/add/"),
    ],
)
def test_the_nearest_page_of_an_unknown_url_comes_first(
    index: SearchIndex, reference: str, expected: str
) -> None:
    assert nearest_pages(index, reference)[0].url == expected


def test_a_page_is_all_documents_that_share_its_url_persian_first(build: Build) -> None:
    english = f"---\nurl: {DISKS}\nlang: en\n---\n# Disks\n\nHow to make a disk.\n"
    persian = f"---\nurl: {DISKS}\nlang: fa\n---\n# دیسک‌ها\n\nساخت دیسک.\n"
    index = build({"a-en.md": english, "b-fa.md": persian})
    page, _ = find_page(index, DISKS)
    assert page.title == "دیسک‌ها"
    assert page_text(index, page) == f"{persian}\n\n---\n\n{english}"


def test_a_section_runs_from_its_heading_over_its_subsections(index: SearchIndex) -> None:
    page, _ = find_page(index, DISKS)
    text, sections = page_text(index, page), page_sections(index, page)
    section = find_section(sections, "ساخت دیسک")
    assert section is not None
    shown = text[section.start : section.end]
    assert shown.startswith("## ساخت دیسک\n")
    assert "liara disk:create" in shown
    assert "حذف" not in shown


def test_a_list_of_all_pages_below_each_page_is_no_section(build: Build) -> None:
    listed = "## all links\n\n[All pages](https://docs.example.ir/all-links-llms.txt)\n"
    text = f"# A\n\ntext\n\n## See also\n\n[B](b.md)\n\n{listed}"
    index = build({"a.md": with_link("a.md", text)})
    page, _ = find_page(index, f"{PREFIX}a/")
    sections = page_sections(index, page)
    assert [section.heading for section in sections] == ["See also"]
    assert page_text(index, page)[sections[0].start : sections[0].end].endswith("[B](b.md)\n\n")


@pytest.mark.parametrize(
    "name",
    ["حذف دیسک", "#حذف-دیسک", "حذف\u200cديسك", "## حذف دیسک", "%D8%AD%D8%B0%D9%81", "حذف  دیسک؟"],
)
def test_a_section_is_found_by_heading_or_anchor_in_any_spelling(
    index: SearchIndex, name: str
) -> None:
    section = find_section(page_sections(index, find_page(index, DISKS)[0]), name)
    assert section is not None
    assert section.heading == "حذف دیسک"


@pytest.mark.parametrize("name", ["", "#", "قیمت سرور", "not a heading"])
def test_an_unknown_heading_is_no_section(index: SearchIndex, name: str) -> None:
    assert find_section(page_sections(index, find_page(index, DISKS)[0]), name) is None


SOURCE = st.lists(
    st.sampled_from(
        ["```json", "```", "~~~", "text", "# heading", "", "{", "دیسک " * 9, "x" * 300, "    ```"]
    ),
    max_size=40,
).map("\n".join)


@given(SOURCE, st.integers(60, 500))
def test_slices_follow_each_other_and_lose_nothing(text: str, max_chars: int) -> None:
    position, seen = 0, []
    while position < len(text):
        piece = cut_page(text, start=position, limit=len(text), max_chars=max_chars)
        assert len(piece.text) <= max_chars
        assert piece.start == position < piece.end
        seen.append(text[piece.start : piece.end])
        assert text[piece.start : piece.end].strip("\n") in piece.text
        position = piece.end
    assert "".join(seen) == text


@given(SOURCE, st.integers(60, 500))
def test_a_cut_falls_at_a_line_end_unless_the_line_is_too_long(text: str, max_chars: int) -> None:
    piece = cut_page(text, start=0, limit=len(text), max_chars=max_chars) if text else None
    if piece and piece.end < len(text) and text[piece.end - 1] != "\n":
        assert "\n" not in text[max_chars // 2 : piece.end]


def test_a_fence_that_is_cut_is_closed_and_opened_again() -> None:
    text = "```json\n" + '"line": 1,\n' * 40 + "```\nafter\n"
    first = cut_page(text, start=0, limit=len(text), max_chars=200)
    second = cut_page(text, start=first.end, limit=len(text), max_chars=4000)
    assert first.text.endswith(",\n```")
    assert second.text.startswith('```json\n"line"')
    assert second.text.endswith("```\nafter")


def test_a_page_of_a_hundred_thousand_fence_lines_is_cut_in_one_pass() -> None:
    # With a pass for each line this takes hours.
    text = "````js\n" + "```\n" * 100_000
    piece = cut_page(text, start=len(text) - 40, limit=len(text), max_chars=8000)
    assert piece.text == "````js\n" + "```\n" * 10 + "````"


def test_relative_links_become_absolute_outside_of_code() -> None:
    text = (
        "[a](../create-app) ![b](x.png) [c](#d) [e](/f/) `[g](../h)`\n"
        "[i](https://other.example/) [j](javascript:x) [k](//evil.example)\n"
        "```md\n[l](../m)\n```\n[n](o)"
    )
    assert absolute_links(text, DISKS) == (
        f"[a]({PREFIX}paas/disks/create-app) ![b]({DISKS}x.png) [c]({DISKS}#d) [e]({PREFIX}f/) "
        "`[g](../h)`\n[i](https://other.example/) [j](javascript:x) [k](//evil.example)\n"
        f"```md\n[l](../m)\n```\n[n]({DISKS}o)"
    )
    assert absolute_links(text, None) == text


def test_a_start_outside_of_the_text_is_refused() -> None:
    with pytest.raises(InvalidArgumentError):
        cut_page("abc", start=3, limit=3, max_chars=100)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=30))
def test_a_section_ends_at_the_next_heading_that_is_not_below_it(
    build: Build, levels: list[int]
) -> None:
    lines = [f"{'#' * level} Part {number}\n\ntext\n" for number, level in enumerate(levels)]
    index = build({"a.md": with_link("a.md", "# Title\n\n" + "".join(lines))})
    source = index.source("a.md")
    sections = page_sections(index, find_page(index, "a.md")[0])
    assert [section.heading for section in sections] == [f"Part {n}" for n in range(len(levels))]
    for number, section in enumerate(sections):
        later = range(number + 1, len(levels))
        end = next((n for n in later if levels[n] <= levels[number]), len(levels))
        assert source[section.start : section.end] == "".join(lines[number:end])
