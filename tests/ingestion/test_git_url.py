import base64
from pathlib import Path

import pytest

from app.errors import SourceUnavailableError
from app.ingestion.git_url import check_ref, display_source, is_git_source, mask, parse_git_url

TOKEN = "ghp_" + "S3cr3tS3cr3t" * 3


@pytest.mark.parametrize(
    ("source", "is_git"),
    [
        ("https://git.example.com/a/b.git", True),
        ("ssh://git@git.example.com/a/b", True),
        ("git@git.example.com:a/b.git", True),
        ("file:///srv/docs", True),
        ("ext::sh -c id", True),
        ("/srv/docs", False),
        ("./docs", False),
        ("~/docs", False),
        ("docs", False),
        (r"C:\docs", False),
    ],
)
def test_git_urls_are_told_from_folders(source: str, is_git: bool) -> None:
    assert is_git_source(source) is is_git


def test_an_existing_folder_with_a_colon_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "host:docs").mkdir()
    monkeypatch.chdir(tmp_path)

    assert not is_git_source("host:docs")


@pytest.mark.parametrize(
    "source",
    [
        f"https://{TOKEN}@git.example.com/a/b.git",
        f"https://user:{TOKEN}@git.example.com:8443/a/b.git",
        f"https://user:p%40{TOKEN}@git.example.com/a/b.git",
        f"https://user:p@{TOKEN}@git.example.com/a/b.git",
        f"ssh://user:{TOKEN}@git.example.com/a/b.git",
    ],
)
def test_credentials_travel_apart_from_the_url_and_are_masked(source: str) -> None:
    url = parse_git_url(source)

    assert TOKEN not in url.url
    assert TOKEN not in repr(url)
    assert TOKEN not in display_source(source)
    assert "git.example.com" in display_source(source)
    encoded = [value.rpartition(" ")[2] for _, value in url.config]
    shown = mask(f"fatal: {source} {' '.join(url.secrets)} {' '.join(encoded)}", url)
    assert url.secrets
    assert TOKEN not in shown
    assert not any(value in shown for value in encoded)


def test_a_token_becomes_a_header_for_its_own_host_only() -> None:
    url = parse_git_url("https://user:se%2Fcret@git.example.com/a/b.git")

    header = base64.b64encode(b"user:se/cret").decode("ascii")
    assert url.url == "https://git.example.com/a/b.git"
    assert url.config == (
        ("http.https://git.example.com/.extraHeader", f"Authorization: Basic {header}"),
    )


def test_a_user_name_alone_is_left_to_the_credential_helper() -> None:
    url = parse_git_url("https://team@git.example.com/a/b.git")

    assert url.config == (("credential.https://git.example.com/.username", "team"),)


@pytest.mark.parametrize(
    "source",
    [
        *(
            "ext::sh -c id",
            "fd::17",
            "transport::x",
            "ftp://a.example/b",
            "javascript://x",
            "-uhost:x",
        ),
        *("https://", "ssh://-oProxyCommand=id/x", "https://a.example/b?private_token=x"),
        *("https://a.example/b c", "https://a.example/\nx", "https://[::1/x", "-x@host:path"),
    ],
)
def test_other_protocols_and_broken_urls_are_refused(source: str) -> None:
    with pytest.raises(SourceUnavailableError):
        parse_git_url(source)


@pytest.mark.parametrize("ref", ["main", "feature/a-b", "v1.2.3", "refs/heads/x", "HEAD", "0" * 40])
def test_names_of_branches_tags_and_commits_are_taken(ref: str) -> None:
    check_ref(ref)


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "-x",
        "--upload-pack=id",
        "a b",
        "a..b",
        "a:b",
        "a^",
        "a~1",
        "a*",
        "a\n",
        "@{u}",
        "a.lock",
        "a/",
    ],
)
def test_what_is_no_name_is_refused(ref: str) -> None:
    with pytest.raises(SourceUnavailableError):
        check_ref(ref)
