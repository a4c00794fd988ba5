import unicodedata
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.errors import UnusableFileError
from app.ingestion.markdown import parse_document
from app.models import Document


def parse(text: str, path: str = "guide/page.md", **options: str) -> Document:
    return parse_document(path, text.encode("utf-8"), **options)


def section_texts(document: Document) -> list[tuple[tuple[str, ...], str]]:
    return [(section.heading_path, section.text) for section in document.sections]


def anchors(document: Document) -> list[str]:
    return [section.anchor for section in document.sections]


def test_sections_follow_the_headings_and_know_their_lines() -> None:
    document = parse(
        "# دیسک‌ها\n\nمقدمه\n\n## ساخت دیسک\n\nگام اول\nگام دوم\n\n"
        "### با خط فرمان\nدستور\n\n## حذف\nپایان\n"
    )

    assert document.title == "دیسک‌ها"
    assert section_texts(document) == [
        ((), "مقدمه"),
        (("ساخت دیسک",), "گام اول\nگام دوم"),
        (("ساخت دیسک", "با خط فرمان"), "دستور"),
        (("حذف",), "پایان"),
    ]
    assert [(s.start_line, s.end_line) for s in document.sections] == [
        (3, 3),
        (5, 8),
        (10, 11),
        (13, 14),
    ]
    assert anchors(document) == ["", "ساخت-دیسک", "با-خط-فرمان", "حذف"]


def test_setext_headings_open_sections() -> None:
    document = parse("Title\n=====\n\nintro\n\nDisks\n-----\ntext\n")

    assert document.title == "Title"
    assert section_texts(document) == [((), "intro"), (("Disks",), "text")]
    assert document.sections[1].start_line == 6


@pytest.mark.parametrize(
    "code",
    [
        "```bash\n# not a heading\n```",
        "~~~\n# not a heading\n~~~",
        "````md\n```\n# not a heading\n```\n````",
        '```yaml {1,3} title="a.yml"\n# not a heading\n```',
        "- step\n\n  ```\n  # not a heading\n  ```",
        "> ```sh\n> # not a heading\n> ```",
        "1. one\n   ~~~ini\n   # not a heading\n   ~~~",
        "    # not a heading",
        "<pre>\n# not a heading\n\n# nor this\n</pre>",
        "<Tab>\n```bash\nls\n\n# not a heading\n```\n</Tab>",
    ],
)
def test_a_hash_in_code_is_no_heading(code: str) -> None:
    document = parse(f"# Title\n\nbefore\n\n{code}\n\nafter\n\n## Real\n\ntext\n")

    assert [section.heading_path for section in document.sections] == [(), ("Real",)]
    assert "not a heading" in document.sections[0].text


def test_indented_code_in_a_component_of_mdx_is_a_fence_not_indented_code() -> None:
    code = "        ```bash\n        # no heading\n        ```\n"
    text = f"# T\n\n<Tabs>\n    <Tab>\n{code}    </Tab>\n</Tabs>\n"

    document = parse(text + "\n## Next\n\ntext\n", path="page.mdx")

    assert [section.heading_path for section in document.sections] == [(), ("Next",)]
    assert "# no heading" in document.sections[0].text


def test_headings_in_lists_and_quotes_open_no_section_but_take_an_anchor() -> None:
    document = parse("# T\n\n- #### Node\n\n> ## Quoted\n\n## Node\n\ntext\n")

    assert section_texts(document) == [((), "- #### Node\n\n> ## Quoted"), (("Node",), "text")]
    assert document.sections[1].anchor == "node-1"


def test_a_fence_whose_closing_line_is_spoilt_ends_there() -> None:
    document = parse("# T\n\n```go\nfunc main() {}\n```</ div>\n\nafter\n\n## Next\n\nmore\n")

    assert section_texts(document) == [
        ((), "```go\nfunc main() {}\n```\n\nafter"),
        (("Next",), "more"),
    ]
    assert "```</ div>" in document.text


@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: صفحه\nurl: https://docs.example.com/a/\nlang: en-US\n---\n",
        '+++\ntitle = "صفحه"\nurl = "https://docs.example.com/a/"\nlang = "en"\n+++\n',
        "---\ntitle: 'صفحه'\nURL: https://docs.example.com/a/\nlang: en\ntags: [a, b]\n...\n",
    ],
)
def test_front_matter_is_metadata_and_never_body(front: str) -> None:
    document = parse(f"{front}\nتوضیح صفحه\n")

    assert document.title == "صفحه"
    assert document.url == "https://docs.example.com/a/"
    assert document.lang == "en"
    assert [section.text for section in document.sections] == ["توضیح صفحه"]
    assert document.sections[0].start_line == front.count("\n") + 2


def test_two_rules_around_prose_are_no_front_matter() -> None:
    document = parse("---\n\nfirst words\n\n---\n\nlast words\n")

    assert "first words" in document.sections[0].text


def test_broken_front_matter_is_dropped_not_shown() -> None:
    document = parse('---\ntitle: "never closed\nkey: [1\n---\n\nbody\n')

    assert [section.text for section in document.sections] == ["body"]


@pytest.mark.parametrize(
    "front",
    [
        '---\ntitle: "\\UFFFFFFFF"\n---',
        '---\ntitle: "\\U00110000"\n---',
        f"---\n%YAML {'1' * 5000}.1\n---",
        f"---\ntitle: {'[' * 9000}\n---",
        f"+++\nsize = {'1' * 5000}\n+++",
        f"+++\nsize = {'[' * 9000}\n+++",
    ],
)
def test_front_matter_that_breaks_its_parser_does_not_lose_the_page(front: str) -> None:
    document = parse(f"{front}\n\nbody\n")

    assert [section.text for section in document.sections][-1].endswith("body")


def test_an_escape_in_front_matter_cannot_write_what_utf_8_cannot() -> None:
    document = parse('---\ntitle: "a\\uD800b"\nurl: "https://x.example/\\uDFFF"\n---\n\nbody\n')

    assert document.title == "a?b"
    assert document.url == "https://x.example/?"


def test_a_block_too_long_for_front_matter_is_text() -> None:
    document = parse(f"---\ntitle: [{'a, ' * 300_000}]\n---\n\nbody\n")

    assert document.sections[1].heading_path[0].startswith("title: [a, a,")


def test_a_first_line_that_names_the_page_gives_the_url_and_is_no_text() -> None:
    document = parse("\ufeffOriginal link: https://docs.example.com/paas/x/\n\n# T\n\ntext\n")

    assert document.url == "https://docs.example.com/paas/x/"
    assert document.text.startswith("Original link:")
    assert section_texts(document) == [((), "text")]
    assert document.sections[0].start_line == 5


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("a/b.md", "https://docs.example.com/v1/a/b"),
        ("a/index.md", "https://docs.example.com/v1/a/"),
        ("a b/c#d [e] ü.md", "https://docs.example.com/v1/a%20b/c%23d%20%5Be%5D%20%C3%BC"),
    ],
)
def test_a_base_url_gives_pages_their_url(path: str, url: str) -> None:
    assert parse("text", path, base_url="https://docs.example.com/v1").url == url


@pytest.mark.parametrize("own", ["javascript:alert(1)", "file:///etc/passwd", "//", "http://[::1"])
def test_a_page_url_that_is_not_of_the_web_is_ignored(own: str) -> None:
    assert parse(f"---\nurl: '{own}'\n---\ntext\n").url is None


@pytest.mark.parametrize(
    ("title_from", "title"),
    [("auto", "From front matter"), ("heading", "From heading"), ("filename", "page")],
)
def test_the_title_comes_from_where_the_operator_says(title_from: str, title: str) -> None:
    text = "---\ntitle: From front matter\n---\n# From heading\n\ntext\n"

    assert parse(text, title_from=title_from).title == title


def test_without_title_or_heading_the_file_names_the_page() -> None:
    assert parse("text", "guide/first-steps.md").title == "first-steps"
    assert parse("text", "guide/README.md").title == "guide"


def test_a_heading_that_is_not_the_title_stays_in_the_path() -> None:
    document = parse("---\ntitle: Disks\n---\n# What is a disk\n\n## Size\n\ntext\n")

    assert document.sections[-1].heading_path == ("What is a disk", "Size")


def test_headings_lose_their_markup_and_keep_their_words() -> None:
    document = parse(
        "# T\n\n## The `PORT` of **my** [app](/x) <Badge text='new' /> {#port}\n\ntext\n"
    )

    assert document.sections[-1].heading_path == ("The PORT of my app",)
    assert document.sections[-1].anchor == "port"


def test_repeated_headings_get_distinct_anchors() -> None:
    document = parse(
        "# T\n\n## Python\n\na\n\n## Python\n\nb\n\n## Python 1\n\nc\n\n## Python\n\nd\n"
    )

    assert anchors(document) == ["python", "python-1", "python-1-1", "python-2"]


def test_components_go_and_their_text_stays() -> None:
    document = parse(
        "import Tabs from '@theme/Tabs';\n"
        'import { A,\n  B } from "x";\n\n'
        "export const meta = {\n  title: 'x',\n};\n\n"
        "# T\n\n"
        "Import your data first.\n\n"
        "<Note>Keep this text</Note>\n\n"
        '<Card\n  title="Quick start"\n  href="/start"\n>\nInside the card\n</Card>\n\n'
        "Set <YOUR_KEY> and <Name> before `<Note>`.\n\n"
        "{item}\n\n{/* hidden */}\n\n<!-- also\n\nhidden -->\n",
        "page.mdx",
    )

    text = document.sections[0].text
    assert "Import your data first." in text
    assert "Keep this text" in text
    assert "Quick start" in text
    assert "Inside the card" in text
    assert "Set <YOUR_KEY> and <Name> before `<Note>`." in text
    for gone in ("Tabs", "export", "</Note>", "Card", "{item}", "hidden", "import"):
        assert gone not in text


def test_html_gives_its_text_links_and_images() -> None:
    document = parse(
        "# T\n\n<div align=center>\n\nHello<br>world\n\n</div>\n\n"
        '<img alt="logo" src="logo.png"> and <a href="b.md">next</a>\n\n'
        "<details><summary>More</summary>\n\nH<sub>2</sub>O is a < b > c\n\n</details>\n\n"
        "<script>\nalert(1)\n</script>\n",
        base_url="https://docs.example.com/",
    )

    lines = [line for line in document.sections[0].text.split("\n") if line.strip()]
    assert [" ".join(line.split()) for line in lines] == [
        "Hello world",
        "![logo](https://docs.example.com/guide/logo.png) and "
        "[next](https://docs.example.com/guide/b)",
        "More",
        "H2O is a < b > c",
    ]


def test_relative_links_become_absolute_outside_of_code() -> None:
    document = parse(
        "# T\n\n[a](../other/x.md#part) ![i](./img/p.png) [s](#here) [r](/root) "
        "[w](https://example.org/x.md) [m](mailto:a@b.c) `[c](x.md)`\n\n"
        "[ref]: y.md\n\n```\n[c](x.md)\n```\n",
        base_url="https://docs.example.com/v1/",
    )

    assert document.sections[0].text == (
        "[a](https://docs.example.com/v1/other/x#part) "
        "![i](https://docs.example.com/v1/guide/img/p.png) "
        "[s](https://docs.example.com/v1/guide/page#here) [r](https://docs.example.com/root) "
        "[w](https://example.org/x.md) [m](mailto:a@b.c) `[c](x.md)`\n\n"
        "[ref]: https://docs.example.com/v1/guide/y\n\n```\n[c](x.md)\n```"
    )


def test_links_of_a_page_with_its_own_url_are_relative_to_it() -> None:
    document = parse(
        "Original link: https://docs.example.com/paas/x/\n\n[n](../net) [s](./sub) [h](#here)\n"
    )

    assert document.sections[0].text == (
        "[n](https://docs.example.com/paas/net) [s](https://docs.example.com/paas/sub) "
        "[h](https://docs.example.com/paas/x/#here)"
    )


def test_a_section_that_only_lists_all_pages_is_dropped_and_other_links_stay() -> None:
    document = parse(
        "# T\n\ntext\n\n## See also\n\n[Disks](https://docs.example.com/disks/)\n\n"
        "## all links\n\n[All of them](https://docs.example.com/all-links-llms.txt)\n"
    )

    assert [section.heading_path for section in document.sections] == [(), ("See also",)]


def test_embedded_image_data_is_shortened_in_sections_only() -> None:
    data = "data:image/png;base64," + "QUJD" * 500
    document = parse(f"# T\n\n![x]({data})\n\n```\n{data}\n```\n")

    assert len(document.sections[0].text) < 200
    assert data in document.text


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("برای ساخت disk در Liara CLI دستور `liara disk create` را اجرا کنید.", "fa"),
        ("Create a disk in the console.", "en"),
        ("在控制台中创建磁盘，然后重新部署应用。", "zh"),
        ("コンソールでディスクを作成します。", "ja"),
        ("콘솔에서 디스크를 만듭니다.", "ko"),
        ("สร้างดิสก์ในคอนโซล", "th"),
        ("متن فارسی کوتاه\n\n```\nlong english code that is much longer than the prose\n```", "fa"),
    ],
)
def test_the_language_is_told_by_the_letters_of_the_prose(text: str, lang: str) -> None:
    assert parse(text).lang == lang


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" \n\t\r\n",
        b"\xef\xbb\xbf",
        b"\xff\xfeh\0i\0",
        b"abc\0def",
        "سلام".encode("cp1256"),
        b"\x89PNG\r\n\x1a\n\0\0",
        b"# Only\n\n## Headings\n",
        b"---\ntitle: x\n---\n",
        b"![](x.png)".replace(b"x.png", b""),
    ],
)
def test_a_file_without_usable_text_is_refused_with_a_reason(raw: bytes) -> None:
    with pytest.raises(UnusableFileError) as refused:
        parse_document("x.md", raw)
    assert str(refused.value)


SAMPLE = "---\ntitle: Café\n---\n# Café\n\nقهوه é\n\n## Réglages\n\n```\n# é\n```\n"


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_byte_order_mark_and_line_ends_change_nothing(line_end: str, mark: str) -> None:
    assert parse(mark + SAMPLE.replace("\n", line_end)) == parse(SAMPLE)


def test_decomposed_unicode_gives_the_same_title_headings_and_anchors() -> None:
    plain, decomposed = parse(SAMPLE), parse(unicodedata.normalize("NFD", SAMPLE))

    def normalised(document: Document) -> Document:
        sections = tuple(
            replace(section, text=unicodedata.normalize("NFC", section.text))
            for section in document.sections
        )
        text = unicodedata.normalize("NFC", document.text)
        return replace(document, sections=sections, text=text)

    assert normalised(decomposed) == plain


MARKDOWN_LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *(
                    "",
                    "# A",
                    "## B",
                    "### C {#id}",
                    "```js",
                    "```",
                    "~~~",
                    "> ```",
                    "- item",
                    "---",
                ),
                *(
                    "===",
                    "    code",
                    "<Note>",
                    "</Note>",
                    "<pre>",
                    "</pre>",
                    "<!--",
                    "-->",
                    "| a | b |",
                ),
                *(
                    "|---|---|",
                    "{item}",
                    "[x](y.md)",
                    "import a from 'b'",
                    "export const a = {",
                    "+++",
                ),
                *(
                    "1. one",
                    "  ```",
                    "> # q",
                    "Original link: https://a.example/b/",
                    "`a",
                    "``b`",
                    "\t- x",
                ),
            ]
        ),
        st.text(max_size=20),
    ),
    max_size=25,
).map("\n".join)


@given(MARKDOWN_LINES)
@example("<!--\n```\n-->\n# a\nx")
def test_section_lines_are_lines_of_the_file_in_order(text: str) -> None:
    try:
        document = parse(text, base_url="https://docs.example.com/")
    except UnusableFileError:
        return
    line_count = document.text.count("\n") + 1
    last = 0
    for section in document.sections:
        assert last < section.start_line <= section.end_line <= line_count
        assert section.end_line - section.text.count("\n") >= section.start_line
        last = section.end_line


@given(st.text(alphabet="abc يک\n #*-", max_size=200))
def test_plain_text_is_kept_word_for_word(text: str) -> None:
    try:
        document = parse(text)
    except UnusableFileError:
        return
    shown = " ".join(
        [document.title]
        + [" ".join((*section.heading_path, section.text)) for section in document.sections]
    )
    words = [word for word in text.replace("#", " ").replace("*", " ").split() if word.isalpha()]
    assert set(words) <= set(shown.replace("#", " ").replace("*", " ").split())


@given(st.one_of(st.binary(max_size=300), MARKDOWN_LINES.map(lambda text: text.encode("utf-8"))))
def test_no_bytes_raise_anything_but_an_unusable_file(raw: bytes) -> None:
    for path in ("a.md", "b.mdx"):
        with suppress(UnusableFileError):
            document = parse_document(path, raw, base_url="https://docs.example.com")
            assert any(section.text for section in document.sections)


@pytest.mark.parametrize(
    "hostile",
    [
        "](" * 50_000,
        "`" + "a``b```c" * 20_000,
        "<A " * 50_000,
        "<Note a={" * 20_000,
        "<!-- " * 50_000,
        "<pre>\n" * 5_000,
        "{/*" * 50_000,
        ">" * 50_000 + " x",
        "- " * 20_000 + "x",
        "# " + " " * 100_000 + "{#",
        "import a" * 30_000,
        "---\n" + "a: [" * 5_000 + "\n---\nx",
        "x" * 1_200_000,
        "[" * 50_000 + "x",
        "[x]: " * 30_000,
        "* _ " * 50_000 + "\n---",
    ],
    ids=lambda text: f"{text[:8]!r}",
)
def test_hostile_text_is_read_in_linear_time(hostile: str) -> None:
    # The whole list takes about a second; quadratic work would take minutes.
    assert parse(hostile + "\nword\n", "x.mdx").sections
