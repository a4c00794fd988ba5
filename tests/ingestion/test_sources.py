import os
import shutil
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import pytest

from app.errors import SourceUnavailableError, UnusableFileError
from app.ingestion.sources import SourceTree, fetch_source, list_files, read_file, remote_revision
from app.models import Skipped
from tests.ingestion.git_servers import Repository, git_over_http, http_server, silent_server

ALL = ("**/*.md",)
TOKEN = "tok3n-0f-th3-t3am-4-d0cs"


@pytest.fixture(autouse=True)
def own_git_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, so that the machine's git config plays no part."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_CONFIG_HOME", "GIT_DIR", "GIT_CONFIG_GLOBAL", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    return home / ".gitconfig"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "upstream")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return tmp_path / "data" / "checkout"


def fetch(
    source: str, checkout: Path, ref: str = "main", timeout_seconds: float = 30
) -> SourceTree:
    return fetch_source(source, ref, ALL, checkout, timeout_seconds=timeout_seconds)


def texts(tree: SourceTree) -> dict[str, str]:
    listing = list_files(tree, ALL, ())
    return {file.path: read_file(file, tree).decode("utf-8") for file in listing.files}


def skipped(tree: SourceTree) -> set[Skipped]:
    return set(list_files(tree, ALL, ()).skipped)


def test_a_branch_a_tag_and_a_commit_each_give_their_files(
    repository: Repository, checkout: Path
) -> None:
    first = repository.commit({"a.md": "one"})
    repository.git("tag", "light")
    second = repository.commit({"a.md": "two"})
    repository.git("tag", "--annotate", "v2", "--message=v2")
    repository.git("checkout", "--quiet", "-b", "feature/x")
    third = repository.commit({"a.md": "three"})
    repository.git("checkout", "--quiet", "main")

    for ref, commit, text in [
        ("main", second, "two"),
        ("light", first, "one"),
        ("v2", second, "two"),
        ("feature/x", third, "three"),
        ("refs/heads/main", second, "two"),
        ("HEAD", second, "two"),
        (first, first, "one"),
        (first[:10], first, "one"),
    ]:
        tree = fetch(repository.url, checkout, ref)
        assert (tree.origin, tree.rev, texts(tree)) == ("git", commit, {"a.md": text}), ref
        assert tree.rev_date is not None
        assert tree.rev_date.startswith("20")


@pytest.mark.parametrize("allow_filter", ["true", "false"])
@pytest.mark.parametrize("protocol", ["0", "2"])
def test_servers_of_every_kind_give_what_is_asked(
    repository: Repository, checkout: Path, own_git_config: Path, allow_filter: str, protocol: str
) -> None:
    own_git_config.write_text(f"[protocol]\nversion = {protocol}\n", encoding="utf-8")
    repository.git("config", "uploadpack.allowFilter", allow_filter)
    first = repository.commit({"a.md": "one", "big.bin": os.urandom(10_000)})
    second = repository.commit({"a.md": "two", "b/c.md": "more"})

    assert texts(fetch(repository.url, checkout)) == {"a.md": "two", "b/c.md": "more"}
    assert texts(fetch(repository.url, checkout, first)) == {"a.md": "one"}
    assert fetch(repository.url, checkout, second).rev == second


def test_only_the_blobs_that_the_globs_need_are_fetched(
    repository: Repository, checkout: Path
) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.commit({"a.md": "old"})
    repository.commit({"a.md": "new", "video.bin": os.urandom(50_000), "src/x.py": "pass"})

    fetch(repository.url, checkout)

    objects = subprocess.run(
        [
            *("git", f"--git-dir={checkout / 'repo.git'}", "cat-file"),
            *("--batch-all-objects", "--batch-check=%(objecttype)"),
        ],
        capture_output=True,
        check=True,
    ).stdout.split()
    assert sorted(objects) == [b"blob", b"commit", b"tree", b"tree"]


def test_an_update_brings_changed_deleted_and_renamed_files(
    repository: Repository, checkout: Path
) -> None:
    repository.commit({"a.md": "a", "b.md": "b", "c/d.md": "d"})
    fetch(repository.url, checkout)
    repository.git("rm", "--quiet", "b.md")
    repository.git("mv", "c/d.md", "e.md")
    commit = repository.commit({"a.md": "changed"})

    tree = fetch(repository.url, checkout)

    assert (tree.rev, texts(tree)) == (commit, {"a.md": "changed", "e.md": "d"})


def test_a_force_push_that_removes_the_old_commit_is_followed(
    repository: Repository, checkout: Path
) -> None:
    repository.commit({"a.md": "base"})
    repository.commit({"a.md": "old"})
    fetch(repository.url, checkout)
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    commit = repository.commit({"b.md": "new history"})
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "--quiet", "--prune=now")

    tree = fetch(repository.url, checkout)

    assert (tree.rev, texts(tree)) == (commit, {"a.md": "base", "b.md": "new history"})


def test_a_revision_that_is_on_disk_is_not_written_again(
    repository: Repository, checkout: Path
) -> None:
    repository.commit({"a.md": "a"})
    first = fetch(repository.url, checkout)
    before = first.root.stat().st_ino
    shutil.rmtree(checkout / "repo.git")

    assert fetch(repository.url, checkout) == first
    assert first.root.stat().st_ino == before
    assert not (checkout / "repo.git").exists()


def test_other_globs_bring_other_files_of_the_same_revision(
    repository: Repository, checkout: Path
) -> None:
    repository.commit({"a.md": "a", "b.txt": "b"})
    fetch(repository.url, checkout)

    tree = fetch_source(repository.url, "main", ("*.txt",), checkout)

    assert [file.path for file in list_files(tree, ("*.txt",), ()).files] == ["b.txt"]


@pytest.mark.parametrize("damage", ["objects", "head", "tree", "state", "leftovers"])
def test_a_damaged_checkout_is_made_anew(
    repository: Repository, checkout: Path, damage: str
) -> None:
    repository.commit({"a.md": "a"})
    fetch(repository.url, checkout)
    if damage == "objects":
        for pack in (checkout / "repo.git" / "objects").rglob("pack-*"):
            pack.chmod(0o600)
            pack.write_bytes(b"damaged")
    elif damage == "head":
        (checkout / "repo.git" / "HEAD").write_bytes(b"\0")
    elif damage == "tree":
        shutil.rmtree(checkout / "tree")
    elif damage == "state":
        (checkout / "state.json").write_text("[1", encoding="utf-8")
    else:
        (checkout / "tree.new" / "x").mkdir(parents=True)
        (checkout / "repo.git" / "shallow.lock").write_bytes(b"")
    commit = repository.commit({"b.md": "b"})

    tree = fetch(repository.url, checkout)

    assert (tree.rev, texts(tree)) == (commit, {"a.md": "a", "b.md": "b"})


def test_a_failed_update_leaves_the_last_files(repository: Repository, checkout: Path) -> None:
    repository.commit({"a.md": "a"})
    tree = fetch(repository.url, checkout)
    repository.folder.rename(repository.folder.with_name("moved"))

    with pytest.raises(SourceUnavailableError):
        fetch(repository.url, checkout)
    assert texts(tree) == {"a.md": "a"}


def test_links_submodules_and_pointers_are_named_and_never_followed_outside(
    repository: Repository, checkout: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    commit = repository.commit({"docs/a.md": "a", "pointer.md": pointer})
    for name, target in {
        "in.md": "docs/a.md",
        "docs/up.md": "../in.md",
        "out.md": "../secret.md",
        "absolute.md": str(tmp_path / "secret.md"),
        "folder.md": "docs",
        "loop.md": "loop.md",
    }.items():
        (repository.folder / name).symlink_to(target)
    repository.git("add", "--all")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},vendor/lib")
    repository.git("commit", "--quiet", "--message=links")

    tree = fetch(repository.url, checkout)
    listing = list_files(tree, ALL, ())

    files = {file.path: file for file in listing.files}
    assert files.keys() == {"docs/a.md", "in.md", "pointer.md"}
    assert read_file(files["in.md"], tree) == b"a"
    with pytest.raises(UnusableFileError, match="git-lfs"):
        read_file(files["pointer.md"], tree)
    assert skipped(tree) == {
        Skipped("absolute.md", "symbolic link that leaves the source"),
        Skipped("out.md", "symbolic link that leaves the source"),
        Skipped("docs/up.md", "symbolic link to no file"),
        Skipped("folder.md", "symbolic link to no file"),
        Skipped("loop.md", "symbolic link to no file"),
        Skipped("vendor/lib", "submodule"),
    }
    assert not any(path.is_symlink() for path in tree.root.rglob("*"))


def test_odd_names_and_bytes_come_through_unchanged(repository: Repository, checkout: Path) -> None:
    names = ["a b.md", "c#d.md", "[e].md", "ü/文.md", "راهنما.md", 'q"uote.md', "-dash.md"]
    decomposed = unicodedata.normalize("NFD", "é.md")
    raw = "\ufeff# T\r\n\r\n$Id$ é\r\n".encode()
    repository.commit(dict.fromkeys([*names, decomposed], raw))
    attributes = "*.md eol=crlf ident working-tree-encoding=UTF-16"
    (repository.folder / ".gitattributes").write_text(attributes, encoding="utf-8")
    repository.git("add", ".gitattributes")
    repository.git("commit", "--quiet", "--message=attributes")

    tree = fetch(repository.url, checkout)
    listing = list_files(tree, ALL, ())

    assert {file.path for file in listing.files} == {*names, "é.md"}
    assert {read_file(file, tree) for file in listing.files} == {raw}


def test_a_large_file_is_skipped_and_the_rest_is_there(
    repository: Repository, checkout: Path
) -> None:
    repository.commit({"a.md": "a", "CHANGELOG.md": b"- a change\n" * 1_900_000})

    tree = fetch(repository.url, checkout)

    assert texts(tree) == {"a.md": "a"}
    assert skipped(tree) == {Skipped("CHANGELOG.md", "larger than 5 MB")}


def test_paths_of_a_hostile_tree_are_not_written_outside(
    repository: Repository, checkout: Path
) -> None:
    def tree_of(*rows: tuple[str, str, str]) -> str:
        raw = b"".join(
            f"{mode} {name}".encode() + b"\0" + bytes.fromhex(oid) for mode, name, oid in rows
        )
        return repository.git(
            "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw
        )

    repository.commit({"a.md": "a"})
    blob = repository.git("rev-parse", "HEAD:a.md")
    inner = tree_of(("100644", "evil.md", blob))
    root = tree_of(
        ("100644", "..\\win.md", blob),
        ("40000", "..", inner),
        ("40000", ".GIT", inner),
        ("40000", "ok", inner),
    )
    commit = repository.git("commit-tree", root, "-m", "hostile")
    repository.git("update-ref", "refs/heads/hostile", commit)

    tree = fetch_source(repository.url, "hostile", ("**", ".GIT/**", "../**"), checkout)

    written = {path.relative_to(checkout / "tree") for path in checkout.rglob("*.md")}
    assert written == {Path("ok/evil.md")}
    assert not list(checkout.parent.glob("*.md"))
    assert tree.rev == commit


def test_names_that_cannot_be_written_cost_only_their_own_files(
    repository: Repository, checkout: Path
) -> None:
    commit = repository.commit({"a.md": "a"})
    blob = repository.git("rev-parse", "HEAD:a.md")
    deep = repository.git("mktree", stdin=f"100644 blob {blob}\tx.md\n".encode())
    for _ in range(25):
        deep = repository.git("mktree", stdin=f"040000 tree {deep}\t{'d' * 200}\n".encode())
    rows = (
        f"100644 blob {blob}\ta.md\x00040000 tree {deep}\tdeep\0".encode()
        + f"160000 commit {commit}\t".encode()
        + b"sub\xff\0"
        + f"100644 blob {blob}\t".encode()
        + b"bad\xff.md\0"
    )
    root = repository.git("mktree", "-z", "--missing", stdin=rows)
    head = repository.git("commit-tree", root, "-m", "odd")
    repository.git("update-ref", "refs/heads/odd", head)

    tree = fetch_source(repository.url, "odd", ALL, checkout)

    assert texts(tree) == {"a.md": "a"}
    reasons = {item.path[:10]: item.reason for item in skipped(tree)}
    assert reasons == {
        "deep/ddddd": "its path is too long",
        "sub\\udcff": "submodule",
        "bad\\udcff.": "unsafe file name",
    }


def test_nothing_that_is_planted_is_executed(
    repository: Repository, checkout: Path, own_git_config: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "executed"
    evil = f"touch '{marker}'"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for folder in (hooks, repository.folder / ".git" / "hooks", checkout / "repo.git" / "hooks"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("post-checkout", "reference-transaction", "post-merge", "pre-auto-gc"):
            (folder / name).write_text(f"#!/bin/sh\n{evil}\n", encoding="utf-8")
    repository.commit(
        {
            "a.md": "a",
            ".gitattributes": "*.md filter=evil diff=evil",
            ".gitmodules": f'[submodule "x"]\npath = x\nurl = "ext::{evil}"\nupdate = "!{evil}"\n',
            ".lfsconfig": f'[lfs]\nurl = "ext::{evil}"\n',
            "config": f'[core]\nfsmonitor = "{evil}"\n',
        }
    )
    # From here on every hook may be run, and git's own config asks for it.
    for folder in (hooks, repository.folder / ".git" / "hooks", checkout / "repo.git" / "hooks"):
        for hook in folder.iterdir():
            hook.chmod(0o700)
    own_git_config.write_text(
        f'[core]\nhooksPath = "{hooks}"\nfsmonitor = "{evil}"\n[init]\ntemplateDir = "{tmp_path}"\n'
        f'[filter "evil"]\nsmudge = "{evil}"\nprocess = "{evil}"\nrequired = true\n'
        f'[diff "evil"]\ntextconv = "{evil}"\n',
        encoding="utf-8",
    )

    subprocess.run(["git", "clone", "--quiet", repository.url, tmp_path / "naive"], check=False)
    assert marker.exists(), "an ordinary clone runs what is planted here"
    marker.unlink()

    assert texts(fetch(repository.url, checkout)) == {"a.md": "a"}
    assert not marker.exists()


@pytest.mark.parametrize(
    "source",
    [
        "ext::sh -c {evil}",
        "ext::sh% -c% {evil}",
        "fd::0",
        "file://{evil}",
        "ssh://-oProxyCommand={evil}/x",
    ],
)
def test_a_source_that_would_run_a_program_is_refused(
    checkout: Path, tmp_path: Path, source: str
) -> None:
    marker = tmp_path / "executed"

    with pytest.raises(SourceUnavailableError):
        fetch(source.format(evil=f"touch {marker}"), checkout)
    assert not marker.exists()


@pytest.mark.parametrize("ref", ["--upload-pack=touch executed", "-x", "main:refs/heads/x", "a b"])
def test_a_ref_that_git_could_take_for_something_else_is_refused(
    repository: Repository, checkout: Path, ref: str
) -> None:
    repository.commit({"a.md": "a"})

    with pytest.raises(SourceUnavailableError):
        fetch(repository.url, checkout, ref)
    assert not checkout.exists()


def test_a_missing_ref_is_named_with_the_default_branch(
    repository: Repository, checkout: Path
) -> None:
    repository.commit({"a.md": "a"})

    with pytest.raises(SourceUnavailableError, match=r"'master'.*default branch is 'main'"):
        fetch(repository.url, checkout, "master")


def test_variables_of_a_git_hook_do_not_lead_elsewhere(
    repository: Repository, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a.md": "a"})
    other = Repository(tmp_path / "other")
    other.commit({"x.md": "x"})
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.folder / ".git" / "objects"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))

    assert texts(fetch(repository.url, checkout)) == {"a.md": "a"}
    assert not (tmp_path / "trace").exists()


def logging_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a git in front of the PATH that logs its process id, arguments and CA bundle."""
    real = shutil.which("git")
    folder.mkdir()
    log = folder / "log"
    script = folder / "git"
    logged = f'printf "%s %s %s\\n" "$$" "$*" "$GIT_SSL_CAINFO" >> "{log}"'
    script.write_text(f'#!/bin/sh\n{logged}\nexec {real} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


def test_a_token_opens_the_repository_and_appears_nowhere(
    repository: Repository, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    commit = repository.commit({"a.md": "a"})
    log = logging_git(tmp_path / "bin", monkeypatch)

    with http_server(git_over_http(tmp_path, "team", TOKEN)) as address:
        source = f"http://team:{TOKEN}@{address}/upstream/.git"
        tree = fetch(source, checkout)
        assert remote_revision(source, "main", 10) == commit
        with pytest.raises(SourceUnavailableError) as missing:
            fetch(source, checkout, "no-such-branch")

    assert texts(tree) == {"a.md": "a"}
    written = [path.read_bytes() for path in checkout.rglob("*") if path.is_file()]
    seen = b"\n".join([*written, log.read_bytes(), str(missing.value).encode()])
    assert b"ls-remote" in seen
    assert TOKEN.encode() not in seen
    assert b"Basic" not in seen


def test_a_repository_that_would_ask_for_a_password_fails_at_once(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    askpass = tmp_path / "askpass"
    askpass.write_text(f'#!/bin/sh\ntouch "{asked}"\necho x\n', encoding="utf-8")
    askpass.chmod(0o700)
    monkeypatch.setenv("GIT_ASKPASS", str(askpass))
    monkeypatch.setenv("SSH_ASKPASS", str(askpass))

    with http_server(git_over_http(tmp_path, "team", TOKEN)) as address:
        for source in (f"http://{address}/x.git", f"http://team:wr0ng-{TOKEN}@{address}/x.git"):
            with pytest.raises(SourceUnavailableError) as refused:
                fetch(source, checkout, timeout_seconds=20)
            assert "took too long" not in str(refused.value)
            assert TOKEN not in str(refused.value)
            assert remote_revision(source, "main", 10) is None
    assert not asked.exists()


def test_an_ssh_server_that_cannot_be_reached_fails_at_once(checkout: Path) -> None:
    with pytest.raises(SourceUnavailableError) as refused:
        fetch("ssh://git@127.0.0.1:1/docs.git", checkout, timeout_seconds=20)
    assert "took too long" not in str(refused.value)


def test_a_credential_helper_of_the_machine_is_used(
    repository: Repository, checkout: Path, tmp_path: Path, own_git_config: Path
) -> None:
    repository.commit({"a.md": "a"})
    helper = f'!f() {{ test \\"$1\\" = get && echo username=team && echo password={TOKEN}; }}; f'
    own_git_config.write_text(f'[credential]\nhelper = "{helper}"\n', encoding="utf-8")

    with http_server(git_over_http(tmp_path, "team", TOKEN)) as address:
        tree = fetch(f"http://team@{address}/upstream/.git", checkout)

    assert texts(tree) == {"a.md": "a"}


def running_in_groups(groups: list[int]) -> list[str]:
    """Return the processes of process groups that are not dead yet."""
    shown = subprocess.run(
        ["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, check=True, encoding="utf-8"
    ).stdout
    rows = [line.split(None, 2) for line in shown.splitlines()]
    return [row[2] for row in rows if int(row[0]) in groups and not row[1].startswith("Z")]


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps to see processes")
def test_a_server_that_never_answers_is_left_at_the_deadline(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging_git(tmp_path / "bin", monkeypatch)
    stop = threading.Event()

    with http_server(silent_server(stop)) as address:
        with pytest.raises(SourceUnavailableError, match="took too long"):
            fetch(f"http://{address}/x.git", checkout, timeout_seconds=0.5)
        stop.set()

    pids = [int(line.split()[0]) for line in log.read_text(encoding="utf-8").splitlines()]
    assert pids
    assert not running_in_groups(pids)


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps to see processes")
def test_a_program_that_ends_in_the_middle_of_a_fetch_leaves_no_git_behind(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging_git(tmp_path / "bin", monkeypatch)
    stop = threading.Event()
    fetch_and_exit = """
import sys, threading, time
from pathlib import Path
from app.ingestion.sources import fetch_source
arguments = (sys.argv[1], "main", ["**/*.md"], Path(sys.argv[2]))
threading.Thread(target=fetch_source, args=arguments, daemon=True).start()
while not Path(sys.argv[3]).is_file():
    time.sleep(0.02)
"""
    with http_server(silent_server(stop)) as address:
        arguments = (f"http://{address}/x.git", str(checkout), str(log))
        program = [sys.executable, "-c", fetch_and_exit, *arguments]
        subprocess.run(program, check=True, timeout=30)
        pids = [int(line.split()[0]) for line in log.read_text(encoding="utf-8").splitlines()]
        assert pids
        assert not running_in_groups(pids)
        stop.set()


def test_a_ca_bundle_reaches_git(
    repository: Repository, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a.md": "a"})
    log = logging_git(tmp_path / "bin", monkeypatch)

    fetch_source(repository.url, "main", ALL, checkout, ca_bundle=tmp_path / "company.pem")

    lines = log.read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(line.endswith("/company.pem") for line in lines)


def test_the_remote_revision_is_told_without_a_fetch(repository: Repository) -> None:
    commit = repository.commit({"a.md": "a"})
    repository.git("tag", "--annotate", "v1", "--message=v1")

    assert remote_revision(repository.url, "main", 10) == commit
    assert remote_revision(repository.url, "v1", 10) == commit
    assert remote_revision(repository.url, commit, 10) == commit
    assert remote_revision(repository.url, "none", 10) is None
    assert remote_revision(repository.url + "-gone", "main", 10) is None
    assert remote_revision("ext::sh -c id", "main", 10) is None


def test_a_local_work_tree_tells_its_commit(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit({"docs/a.md": "a"})
    repository.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))

    def rev(folder: Path) -> str | None:
        return fetch_source(str(folder), "main", ALL, tmp_path).rev

    assert rev(repository.folder) == rev(repository.folder / "docs") == commit
    assert rev(tmp_path / "side") == commit
    repository.git("pack-refs", "--all")
    assert rev(repository.folder) == commit
    repository.git("checkout", "--quiet", "--detach")
    assert rev(repository.folder) == commit
    assert remote_revision(str(repository.folder), "main", 1) == commit


def test_progress_reports_each_file(repository: Repository, checkout: Path) -> None:
    repository.commit({f"{number}.md": str(number) for number in range(5)})
    reports: list[tuple[str, int, int]] = []

    fetch_source(
        repository.url, "main", ALL, checkout, progress=lambda *report: reports.append(report)
    )

    assert reports[0] == ("fetch", 0, 1)
    assert ("fetch", 5, 5) in reports
