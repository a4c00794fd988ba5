import os
import socket
import unicodedata
from pathlib import Path

import pytest

from app.errors import SourceUnavailableError, UnusableFileError
from app.ingestion.files import MAX_FILE_BYTES
from app.ingestion.sources import SourceTree, fetch_source, list_files, read_file, stat_fingerprint
from app.models import Skipped

ALL = ("**/*.md",)


def local(root: Path) -> SourceTree:
    return fetch_source(str(root), "main", ALL, root / "unused")


def write(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"text of {path}", encoding="utf-8")


def paths_of(
    root: Path, include: tuple[str, ...] = ALL, exclude: tuple[str, ...] = ()
) -> list[str]:
    return [file.path for file in list_files(local(root), include, exclude).files]


def test_a_local_folder_is_read_in_place(tmp_path: Path) -> None:
    write(tmp_path, "b.md", "a/c.md", "a/b.txt")

    tree = local(tmp_path)
    listing = list_files(tree, ALL, ())

    assert (tree.root, tree.origin, tree.rev) == (tmp_path.resolve(), "file", None)
    assert [file.path for file in listing.files] == ["a/c.md", "b.md"]
    assert read_file(listing.files[0], tree) == b"text of a/c.md"


def test_globs_choose_and_leave_out_files(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "docs/b.md", "docs/old/c.md", "archive/x/d.md")

    assert paths_of(tmp_path, ("docs/**", "*.md"), ("docs/old/**", "archive/**")) == [
        "a.md",
        "docs/b.md",
    ]


def test_folders_without_documentation_are_left_out_unless_named(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "node_modules/x/b.md", ".venv/c.md", ".git/d.md", ".github/e.md")

    assert paths_of(tmp_path) == ["a.md"]
    assert paths_of(tmp_path, (".github/**/*.md",)) == [".github/e.md"]


@pytest.mark.parametrize(
    "name", ["a b.md", "c#d.md", "[e].md", "ü.md", "راهنما.md", "文档.md", "a%20b.md"]
)
def test_odd_file_names_round_trip(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"sub dir/{name}")

    (file,) = list_files(local(tmp_path), ALL, ()).files

    assert file.path == f"sub dir/{name}"
    assert read_file(file, local(tmp_path)) == f"text of sub dir/{name}".encode()


def test_decomposed_file_names_are_listed_composed(tmp_path: Path) -> None:
    write(tmp_path, unicodedata.normalize("NFD", "é/ü.md"))

    assert paths_of(tmp_path) == ["é/ü.md"]


def test_two_names_that_differ_only_in_unicode_form_are_one_file(tmp_path: Path) -> None:
    write(tmp_path, unicodedata.normalize("NFD", "é.md"), "é.md")

    listing = list_files(local(tmp_path), ALL, ())

    assert [file.path for file in listing.files] == ["é.md"]
    assert [item.path for item in listing.skipped] == ["é.md"]


def test_links_stay_inside_of_the_source(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    write(outside, "secret.md")
    write(tmp_path / "root-sibling", "x.md")
    write(root, "real.md")
    (root / "inside.md").symlink_to("real.md")
    (root / "out.md").symlink_to(outside / "secret.md")
    (root / "sibling.md").symlink_to("../root-sibling/x.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "gone.md").symlink_to("nothing.md")
    (root / "folder").symlink_to(outside)

    listing = list_files(local(root), ALL, ())

    assert [file.path for file in listing.files] == ["inside.md", "real.md"]
    reasons = {item.path: item.reason for item in listing.skipped}
    assert reasons.keys() == {"out.md", "sibling.md", "loop.md", "gone.md", "folder"}
    assert reasons["out.md"] == reasons["sibling.md"] == "symbolic link that leaves the source"


def test_a_file_that_becomes_a_link_out_after_the_listing_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(tmp_path, "secret.md")
    write(root, "a.md")
    (file,) = list_files(local(root), ALL, ()).files
    (root / "a.md").unlink()
    (root / "a.md").symlink_to("../secret.md")

    with pytest.raises(UnusableFileError):
        read_file(file, local(root))


def test_pipes_and_sockets_are_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.md")
        listing = list_files(local(tmp_path), ALL, ())

    assert listing.files == ()
    assert {item.path for item in listing.skipped} == {"pipe.md", "socket.md"}


def test_a_file_that_becomes_a_pipe_after_the_listing_does_not_block(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    (file,) = list_files(local(tmp_path), ALL, ()).files
    (tmp_path / "a.md").unlink()
    os.mkfifo(tmp_path / "a.md")

    with pytest.raises(UnusableFileError):
        read_file(file, local(tmp_path))


def test_large_files_pointers_and_bad_names_are_skipped_with_a_reason(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    with (tmp_path / "large.md").open("wb") as large:
        large.truncate(20_000_000)
    Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.md")).write_text("x", encoding="utf-8")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    (tmp_path / "pointer.md").write_text(pointer, encoding="utf-8")

    tree = local(tmp_path)
    listing = list_files(tree, ALL, ())

    assert [file.path for file in listing.files] == ["a.md", "pointer.md"]
    assert listing.skipped == (
        Skipped("caf\\udce9.md", "the file name is not UTF-8"),
        Skipped("large.md", f"larger than {MAX_FILE_BYTES // 1_000_000} MB"),
    )
    with pytest.raises(UnusableFileError, match="git-lfs"):
        read_file(listing.files[1], tree)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_skipped_with_a_reason(tmp_path: Path) -> None:
    write(tmp_path, "closed/a.md", "b.md")
    (tmp_path / "closed").chmod(0)
    (tmp_path / "b.md").chmod(0)

    tree = local(tmp_path)
    listing = list_files(tree, ALL, ())
    (tmp_path / "closed").chmod(0o700)

    assert [item.path for item in listing.skipped] == ["closed"]
    with pytest.raises(UnusableFileError):
        read_file(listing.files[0], tree)


def test_a_deleted_file_is_unusable_and_no_crash(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    (file,) = list_files(local(tmp_path), ALL, ()).files
    (tmp_path / "a.md").unlink()

    with pytest.raises(UnusableFileError):
        read_file(file, local(tmp_path))


def test_the_fingerprint_changes_with_every_kind_of_change(tmp_path: Path) -> None:
    def fingerprint() -> str:
        return stat_fingerprint(list_files(local(tmp_path), ALL, ()))

    write(tmp_path, "a.md", "b.md")
    seen = [fingerprint()]
    assert fingerprint() == seen[0]
    write(tmp_path, "c.md")
    seen.append(fingerprint())
    os.utime(tmp_path / "a.md", ns=(1, 1))
    seen.append(fingerprint())
    (tmp_path / "b.md").rename(tmp_path / "d.md")
    seen.append(fingerprint())
    (tmp_path / "e.md").symlink_to("nothing")
    seen.append(fingerprint())
    write(tmp_path, "not-chosen.txt")

    assert len(set(seen)) == len(seen)
    assert fingerprint() == seen[-1]


@pytest.mark.parametrize("source", ["/nowhere/at/all", "~nobody-of-that-name/docs", "a\0b"])
def test_a_folder_that_is_not_there_is_an_unavailable_source(tmp_path: Path, source: str) -> None:
    with pytest.raises(SourceUnavailableError):
        fetch_source(source, "main", ALL, tmp_path)
