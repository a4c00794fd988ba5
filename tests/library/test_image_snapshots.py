"""Snapshots of an image and of a disk: which one answers after an upgrade, and after a loss."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.liara.corpus import LIARA_SPEC
from app.library.library import DocumentLibrary
from app.library.status import SetState
from tests.library.repositories import Repository, write_tree

pytestmark = pytest.mark.anyio

PATH = "public/llms/paas/disks.md"
PAGE = "Original link: https://docs.liara.ir/paas/disks/\n\n# Disks\n\nEdition {} of the text.\n"
STARTER = "---\nurl: https://docs.liara.ir/paas/disks/\n---\n\n# Disks\n\nStarter text on disks.\n"


class Deployment:
    """An image and a disk, both filled from one upstream repository with three editions."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.image, self.disk = folder / "image", folder / "disk"
        self.starter = write_tree(folder / "starter", {"disks.md": STARTER})
        self._upstream = Repository.create(folder / "upstream", {"README.md": "Docs"}, "master")
        self._commits = []
        for day in (1, 2, 3):
            # The age of a snapshot is that of its commit, in whole seconds.
            monkeypatch.setenv("GIT_COMMITTER_DATE", f"2030-01-0{day}T00:00:00+00:00")
            self._commits.append(self._upstream.commit({PATH: PAGE.format(day)}))

    async def fill(self, folder: Path, edition: int) -> None:
        """Build a folder from a pinned commit, as the image is built."""
        commit = self._commits[edition - 1]
        spec = replace(LIARA_SPEC, source=self._upstream.url, ref=commit)
        status = await DocumentLibrary([spec], data_dir=folder).refresh("liara")
        assert status.state is SetState.FRESH

    def start(self) -> DocumentLibrary:
        """Start the program on both folders, before it has fetched anything."""
        spec = replace(LIARA_SPEC, source=self._upstream.url)
        library = DocumentLibrary(
            [spec], data_dir=self.disk, image_dir=self.image, starter_dir=self.starter
        )
        library.load()
        return library


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    return Deployment(tmp_path, monkeypatch)


def edition(library: DocumentLibrary) -> str:
    index = library.index("liara")
    (path,) = index.documents
    return index.source(path).strip().rpartition("\n")[2]


def make_old(folder: Path) -> None:
    """Turn the snapshots of a folder into those of a version before this one."""
    for manifest in (folder / "sets" / "liara").glob("snapshots/*/manifest.json"):
        content = json.loads(manifest.read_text(encoding="utf-8"))
        manifest.write_text(json.dumps(content | {"format": 0}), encoding="utf-8")


async def test_an_image_newer_than_the_disk_answers(deployment: Deployment) -> None:
    await deployment.fill(deployment.disk, 1)
    await deployment.fill(deployment.image, 2)
    library = deployment.start()
    assert edition(library) == "Edition 2 of the text."
    assert library.status("liara").state is SetState.FRESH


async def test_a_disk_newer_than_the_image_answers(deployment: Deployment) -> None:
    await deployment.fill(deployment.image, 1)
    await deployment.fill(deployment.disk, 2)
    assert edition(deployment.start()) == "Edition 2 of the text."


async def test_an_older_commit_built_later_does_not_win(deployment: Deployment) -> None:
    await deployment.fill(deployment.disk, 2)
    await deployment.fill(deployment.image, 1)
    for manifest in (deployment.image / "sets" / "liara").glob("snapshots/*/manifest.json"):
        content = json.loads(manifest.read_text(encoding="utf-8"))
        later = content | {"built_at": "2031-01-01T00:00:00+00:00"}
        manifest.write_text(json.dumps(later), encoding="utf-8")
    assert edition(deployment.start()) == "Edition 2 of the text."


async def test_an_empty_disk_is_filled_while_the_image_answers(deployment: Deployment) -> None:
    await deployment.fill(deployment.image, 1)
    library = deployment.start()
    assert edition(library) == "Edition 1 of the text."
    assert not (deployment.disk / "sets").exists()
    status = await library.refresh("liara")
    assert status.state is SetState.FRESH
    assert edition(library) == "Edition 3 of the text."
    assert edition(deployment.start()) == "Edition 3 of the text."


async def test_an_image_that_is_up_to_date_is_not_copied_to_the_disk(
    deployment: Deployment,
) -> None:
    await deployment.fill(deployment.image, 3)
    library = deployment.start()
    assert (await library.refresh("liara")).state is SetState.FRESH
    assert not list((deployment.disk / "sets" / "liara").glob("snapshots/*"))
    assert edition(deployment.start()) == "Edition 3 of the text."


async def test_a_disk_of_an_old_format_is_rebuilt_while_the_image_answers(
    deployment: Deployment,
) -> None:
    await deployment.fill(deployment.disk, 2)
    make_old(deployment.disk)
    await deployment.fill(deployment.image, 1)
    library = deployment.start()
    assert edition(library) == "Edition 1 of the text."
    await library.refresh("liara")
    assert edition(library) == "Edition 3 of the text."
    assert edition(deployment.start()) == "Edition 3 of the text."


async def test_an_image_of_an_old_format_leaves_the_disk_in_charge(deployment: Deployment) -> None:
    await deployment.fill(deployment.disk, 1)
    await deployment.fill(deployment.image, 2)
    make_old(deployment.image)
    assert edition(deployment.start()) == "Edition 1 of the text."


async def test_without_a_readable_snapshot_the_starter_pages_answer_until_the_rebuild(
    deployment: Deployment,
) -> None:
    await deployment.fill(deployment.disk, 1)
    await deployment.fill(deployment.image, 2)
    make_old(deployment.disk)
    make_old(deployment.image)
    library = deployment.start()
    assert edition(library) == "Starter text on disks."
    status = library.status("liara")
    assert status.state is SetState.STARTER
    assert "format" in (status.reason or "")
    await library.refresh("liara")
    assert edition(library) == "Edition 3 of the text."


async def test_the_image_is_only_read(deployment: Deployment) -> None:
    await deployment.fill(deployment.image, 1)
    before = {
        path: path.stat().st_mtime_ns for path in deployment.image.rglob("*") if path.is_file()
    }
    await deployment.start().refresh("liara")
    after = {
        path: path.stat().st_mtime_ns for path in deployment.image.rglob("*") if path.is_file()
    }
    assert after == before


async def test_a_snapshot_that_was_synced_from_another_source_is_no_changed_config(
    deployment: Deployment, tmp_path: Path
) -> None:
    copy = write_tree(tmp_path / "copy", {PATH: PAGE.format(7)})
    synced = DocumentLibrary(
        [replace(LIARA_SPEC, source=str(copy))],
        data_dir=deployment.disk,
        starter_dir=deployment.starter,
    )
    await synced.refresh("liara")
    library = deployment.start()
    status = library.status("liara")
    assert edition(library) == "Edition 7 of the text."
    assert (status.state, status.reason) == (SetState.FRESH, None)
