import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingestion.globs import check_glob, folder_matcher, path_matcher


@pytest.mark.parametrize(
    ("pattern", "covered", "not_covered"),
    [
        ("**/*.md", ["a.md", "a/b.md", "a/b/c.md", ".x/a.md"], ["a.mdx", "a/b", "a.md/b"]),
        ("*.md", ["a.md"], ["a/b.md"]),
        ("docs/**", ["docs/a.md", "docs/a/b"], ["docs", "docsx/a.md", "x/docs/a.md"]),
        ("docs/", ["docs/a.md", "docs/a/b"], ["docs", "x/docs/a"]),
        ("docs/*/x.md", ["docs/a/x.md"], ["docs/x.md", "docs/a/b/x.md"]),
        ("docs/**/x.md", ["docs/x.md", "docs/a/x.md", "docs/a/b/x.md"], ["x.md", "docs/ax.md"]),
        ("**/b/*.md", ["b/x.md", "a/b/x.md", "a/b/b/x.md"], ["a/x.md", "b/c/x.md"]),
        ("**", ["a", "a/b.md"], []),
        ("a?.md", ["ab.md"], ["a.md", "a/.md", "abc.md"]),
        ("[ab].md", ["a.md", "b.md"], ["c.md"]),
        ("[!ab].md", ["c.md"], ["a.md", "/.md"]),
        ("**/*.{md,mdx}", ["a.md", "x/a.mdx"], ["a.txt"]),
        ("./guide/*.md", ["guide/a.md"], ["a.md"]),
        ("a+b (c)$.md", ["a+b (c)$.md"], ["aab (c).md"]),
        ("راهنما/*.md", ["راهنما/شروع.md"], ["guide/a.md"]),
    ],
)
def test_a_glob_covers_whole_paths(
    pattern: str, covered: list[str], not_covered: list[str]
) -> None:
    check_glob(pattern)
    matches = path_matcher([pattern])

    assert [path for path in covered if not matches(path)] == []
    assert [path for path in not_covered if matches(path)] == []


def test_no_globs_cover_nothing() -> None:
    assert not path_matcher([])("a.md")


def test_a_folder_that_a_glob_covers_wholly_is_known() -> None:
    matches = folder_matcher(["archive/**", "**/old/", "drafts/*"])

    assert matches("archive")
    assert matches("a/old")
    assert not matches("drafts")


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "",
            "  ",
            "/etc/*.md",
            "~/x",
            "C:/docs",
            "../x.md",
            "a/../b",
            "!a.md",
            "[ab.md",
            "[!",
            "a\n",
        ),
        *("[z-a].md", "x" * 2_000, "{a,b}" * 10),
    ],
)
def test_a_glob_that_cannot_be_meant_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_glob(pattern)


@given(st.text(alphabet="ab/*?[]!-{},.\\^", max_size=15), st.text(alphabet="ab/.-", max_size=15))
def test_a_checked_glob_can_be_matched(pattern: str, path: str) -> None:
    try:
        check_glob(pattern)
    except ValueError:
        return
    assert path_matcher([pattern])(path) in (True, False)
