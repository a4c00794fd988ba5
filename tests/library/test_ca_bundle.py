"""A company's own certificate authorities reach git through the library."""

import os
import shutil
from pathlib import Path

import pytest

from app.library.library import DocumentLibrary
from app.library.status import SetState
from app.models import DocumentSetSpec
from tests.library.repositories import Repository


@pytest.mark.anyio
async def test_the_ca_bundle_reaches_the_git_of_every_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.create(tmp_path / "upstream", {"a.md": "# A\n\nText.\n"})
    log, program = tmp_path / "log", tmp_path / "bin" / "git"
    program.parent.mkdir()
    logged = f'printf "%s\\n" "$GIT_SSL_CAINFO" >> "{log}"'
    program.write_text(f'#!/bin/sh\n{logged}\nexec {shutil.which("git")} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    spec = DocumentSetSpec(id="team", source=repository.url)
    bundle = tmp_path / "company.pem"
    library = DocumentLibrary([spec], data_dir=tmp_path / "data", ca_bundle=bundle)
    assert (await library.refresh("team")).state is SetState.FRESH
    assert set(log.read_text(encoding="utf-8").splitlines()) == {str(bundle)}
