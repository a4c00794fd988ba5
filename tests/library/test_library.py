"""The library over real sources: what answers, in which state, and why."""

import asyncio
import gc
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.errors import DocumentSetNotFoundError, EmptySetError
from app.liara.corpus import LIARA_SPEC
from app.library.config import SetOptions, load_config
from app.library.library import DocumentLibrary
from app.library.status import LibraryEvent, SetState
from app.models import DocumentSetSpec
from tests.library.repositories import Repository, write_tree

pytestmark = pytest.mark.anyio


class FakeClock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **amount: int) -> None:
        self.now += timedelta(**amount)


PAGE = "Original link: https://docs.liara.ir/paas/disks/\n\n# Disks\n\n{}\n"
STARTER = "---\nurl: https://docs.liara.ir/paas/disks/\n---\n\n# Disks\n\nStarter text on disks.\n"


@pytest.fixture
def starter(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "starter", {"disks.md": STARTER})


@pytest.fixture
def official(tmp_path: Path) -> Repository:
    files = {"public/llms/paas/disks.md": PAGE.format("The official text on disks, first edition.")}
    return Repository.create(tmp_path / "official", files, branch="master")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_tree(
        tmp_path / "notes", {"a.md": "# Alpha\n\nThe first note is about apples and trees.\n"}
    )


def liara(source: str) -> DocumentSetSpec:
    return replace(LIARA_SPEC, source=source)


def notes_spec(notes: Path, **keys: Any) -> DocumentSetSpec:
    return DocumentSetSpec(id="notes", source=str(notes), **keys)


def library_of(
    tmp_path: Path, *specs: DocumentSetSpec | SetOptions, **keys: Any
) -> DocumentLibrary:
    return DocumentLibrary(specs, data_dir=tmp_path / "data", poll_seconds=0.05, **keys)


def text_of(library: DocumentLibrary, set_id: str) -> str:
    index = library.index(set_id)
    return "\n".join(index.source(path) for path in index.documents)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that another task, thread or process does."""
    async with asyncio.timeout(15):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@asynccontextmanager
async def running(library: DocumentLibrary) -> AsyncIterator[DocumentLibrary]:
    async with library.run():
        yield library


def state(library: DocumentLibrary, set_id: str) -> SetState:
    return library.status(set_id).state


async def test_without_a_snapshot_the_starter_pages_answer_and_say_so(
    tmp_path: Path, starter: Path
) -> None:
    library = library_of(tmp_path, liara("file:///nowhere"), starter_dir=starter)
    assert not library.ready
    library.load()
    assert library.ready
    status = library.status("liara")
    assert status.state is SetState.STARTER
    assert "starter pages" in (status.reason or "")
    assert status.index is not None
    assert status.index.rev.startswith("starter-")
    assert "Starter text" in text_of(library, "liara")


async def test_the_starter_index_is_built_once_and_found_again(
    tmp_path: Path, starter: Path
) -> None:
    first = library_of(tmp_path, liara("file:///nowhere"), starter_dir=starter)
    first.load()
    second = library_of(tmp_path, liara("file:///nowhere"), starter_dir=starter)
    second.load()
    assert second.index("liara").manifest.built_at == first.index("liara").manifest.built_at
    (starter / "logs.md").write_text(STARTER.replace("disks", "logs"), encoding="utf-8")
    third = library_of(tmp_path, liara("file:///nowhere"), starter_dir=starter)
    third.load()
    assert third.index("liara").manifest.files == 2


async def test_the_background_sync_swaps_the_official_text_in(
    tmp_path: Path, starter: Path, official: Repository
) -> None:
    events: list[LibraryEvent] = []
    library = library_of(tmp_path, liara(official.url), starter_dir=starter, on_event=events.append)
    library.load()
    before = library.index("liara")
    async with running(library):
        await until(lambda: state(library, "liara") is SetState.FRESH)
    assert "first edition" in text_of(library, "liara")
    assert library.index("liara").manifest.rev == official.git("rev-parse", "HEAD")
    assert "Starter text" in before.source("disks.md")
    assert [event.kind for event in events] == ["refreshed"]


async def test_a_failed_sync_keeps_the_starter_pages_and_tells_the_reason(
    tmp_path: Path, starter: Path
) -> None:
    missing = (tmp_path / "missing.git").as_uri()
    library = library_of(tmp_path, liara(missing), starter_dir=starter)
    async with running(library):
        await until(lambda: library.status("liara").last_error)
    status = library.status("liara")
    assert status.state is SetState.STARTER
    assert "refresh failed" in (status.reason or "")


async def test_a_set_that_is_not_synced_at_start_stays_as_it_is(
    tmp_path: Path, starter: Path, official: Repository, notes: Path
) -> None:
    library = library_of(
        tmp_path,
        liara(official.url),
        notes_spec(notes),
        starter_dir=starter,
        sync_on_start=False,
    )
    async with running(library):
        # The local set is built all the same: that fetches nothing.
        await until(lambda: state(library, "notes") is SetState.FRESH)
        assert library.running_job("liara") is None
    assert state(library, "liara") is SetState.STARTER


async def test_a_restart_serves_the_snapshot_of_before_without_its_source(
    tmp_path: Path, official: Repository
) -> None:
    library = library_of(tmp_path, liara(official.url))
    await library.refresh("liara")
    shutil.rmtree(official.folder)
    again = library_of(tmp_path, liara(official.url))
    again.load()
    assert state(again, "liara") is SetState.FRESH
    status = await again.refresh("liara")
    assert status.state is SetState.STALE
    assert "refresh failed" in (status.reason or "")
    assert "first edition" in text_of(again, "liara")


async def test_a_set_without_index_is_empty_and_an_ask_says_so(tmp_path: Path) -> None:
    missing = (tmp_path / "missing.git").as_uri()
    library = library_of(tmp_path, DocumentSetSpec(id="team", source=missing))
    library.load()
    assert state(library, "team") is SetState.EMPTY
    assert library.status("team").index is None
    with pytest.raises(EmptySetError):
        await library.for_answer("team")
    status = await library.refresh("team")
    assert status.state is SetState.EMPTY
    assert status.last_error
    with pytest.raises(EmptySetError, match="refresh failed"):
        library.index("team")


async def test_a_folder_without_documents_is_empty(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "none", {"readme.txt": "no Markdown"})
    library = library_of(tmp_path, DocumentSetSpec(id="team", source=str(folder)))
    status = await library.refresh("team")
    assert status.state is SetState.EMPTY
    with pytest.raises(EmptySetError):
        await library.for_answer("team")


async def test_an_unknown_set_is_refused_with_the_known_ones(tmp_path: Path, notes: Path) -> None:
    library = library_of(tmp_path, notes_spec(notes))
    for ask in (library.index, library.spec, library.status, library.options):
        with pytest.raises(DocumentSetNotFoundError, match="notes"):
            ask("other")
    with pytest.raises(DocumentSetNotFoundError):
        await library.refresh("other")


async def test_callers_of_refresh_join_one_job(tmp_path: Path, notes: Path) -> None:
    events: list[LibraryEvent] = []
    library = library_of(tmp_path, notes_spec(notes), on_event=events.append)
    stages: list[str] = []
    await asyncio.gather(
        library.refresh("notes"),
        library.refresh("notes"),
        library.refresh("notes", lambda stage, done, total: stages.append(stage)),
    )
    assert [event.kind for event in events] == ["refreshed"]
    assert "parse" in stages


async def test_a_caller_that_gives_up_does_not_stop_the_job(tmp_path: Path, notes: Path) -> None:
    library = library_of(tmp_path, notes_spec(notes))
    caller = asyncio.create_task(library.refresh("notes"))
    await asyncio.sleep(0)
    caller.cancel()
    status = await library.refresh("notes")
    assert status.state is SetState.FRESH


async def test_an_edit_of_a_local_file_is_in_the_next_answer(tmp_path: Path, notes: Path) -> None:
    library = library_of(tmp_path, notes_spec(notes))
    await library.refresh("notes")
    write_tree(notes, {"b.md": "# Beta\n\nA second note, on bees and honey.\n"})
    answering = await library.for_answer("notes")
    assert "b.md" in answering.index.documents
    assert answering.state is SetState.FRESH
    (notes / "a.md").unlink()
    answering = await library.for_answer("notes")
    assert list(answering.index.documents) == ["b.md"]


async def test_touched_files_of_equal_content_are_read_again_only_once(
    tmp_path: Path, notes: Path
) -> None:
    events: list[LibraryEvent] = []
    library = library_of(tmp_path, notes_spec(notes), on_event=events.append)
    await library.refresh("notes")
    os.utime(notes / "a.md", ns=(1, 1))
    # Touched, equal content: one look at the files, then it is known.
    first = await library.for_answer("notes")
    again = await library.for_answer("notes")
    assert first.index is again.index
    assert [event.kind for event in events] == ["refreshed", "unchanged"]


async def test_an_answer_that_cannot_wait_for_the_rebuild_is_stale(
    tmp_path: Path, notes: Path
) -> None:
    library = library_of(tmp_path, notes_spec(notes), ask_wait_seconds=0)
    await library.refresh("notes")
    write_tree(notes, {"b.md": "# Beta\n\nA second note, on bees and honey.\n"})
    answering = await library.for_answer("notes")
    assert answering.state is SetState.STALE
    assert "changed" in (answering.reason or "")
    assert "b.md" not in answering.index.documents
    await library.refresh("notes")
    assert (await library.for_answer("notes")).state is SetState.FRESH


async def test_a_folder_that_goes_away_leaves_its_index_stale_until_it_is_back(
    tmp_path: Path, notes: Path
) -> None:
    library = library_of(tmp_path, notes_spec(notes))
    await library.refresh("notes")
    await asyncio.to_thread(notes.rename, tmp_path / "away")
    answering = await library.for_answer("notes")
    assert answering.state is SetState.STALE
    # The reason goes to callers over HTTP: no folder of this machine is in it.
    assert str(tmp_path) not in (answering.reason or "")
    await asyncio.to_thread((tmp_path / "away").rename, notes)
    assert (await library.for_answer("notes")).state is SetState.FRESH


async def test_a_build_keeps_its_objects_from_the_garbage_collector_until_it_is_done(
    tmp_path: Path,
) -> None:
    """A full collection in the middle of a build would hold up every request."""
    pages = {f"{number}.md": f"# Page {number}\n\nSome text.\n" for number in range(40)}
    spec = notes_spec(write_tree(tmp_path / "notes", pages))
    library = library_of(tmp_path, spec)
    frozen: list[int] = []
    await library.refresh("notes", lambda *_: frozen.append(gc.get_freeze_count()))
    assert max(frozen) > 0
    assert gc.get_freeze_count() == 0


async def test_the_watcher_rebuilds_without_an_ask(tmp_path: Path, notes: Path) -> None:
    library = library_of(tmp_path, notes_spec(notes))
    async with running(library):
        await until(lambda: state(library, "notes") is SetState.FRESH)
        number = 0

        def edited() -> bool:
            # The watch begins some time after the start: write until it notices.
            nonlocal number
            number += 1
            write_tree(notes, {"b.md": f"# Beta\n\nEdit number {number}, on bees and honey.\n"})
            return "b.md" in library.index("notes").documents

        await until(edited)


async def test_a_git_source_is_fetched_by_refresh_only(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "team", {"a.md": "# A\n\nThe text of one.\n"})
    library = library_of(tmp_path, DocumentSetSpec(id="team", source=repository.url))
    await library.refresh("team")
    second = repository.commit({"a.md": "# A\n\nThe text of two.\n"})
    assert "of one" in (await library.for_answer("team")).index.source("a.md")
    status = await library.refresh("team")
    assert status.index is not None
    assert status.index.rev == second
    assert "of two" in library.index("team").source("a.md")


def fetching_every_15_minutes(
    tmp_path: Path, repository: Repository, clock: FakeClock
) -> DocumentLibrary:
    data = {
        "docs": {"team": {"source": repository.url, "refresh": "15m"}},
        "default": {"docs": "team"},
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return library_of(tmp_path, config=load_config(path), now=clock)


async def test_a_schedule_fetches_a_git_source_when_its_moment_has_come(tmp_path: Path) -> None:
    clock = FakeClock()
    repository = Repository.create(tmp_path / "team", {"a.md": "# A\n\nThe text of one.\n"})
    library = fetching_every_15_minutes(tmp_path, repository, clock)
    async with running(library):
        await until(lambda: state(library, "team") is SetState.FRESH)
        second = repository.commit({"a.md": "# A\n\nThe text of two.\n"})
        clock.advance(minutes=14)
        assert library.index("team").manifest.rev != second
        clock.advance(minutes=2)
        await until(lambda: library.index("team").manifest.rev == second)


async def test_a_clock_that_is_set_back_stops_no_schedule(tmp_path: Path) -> None:
    clock = FakeClock()
    repository = Repository.create(tmp_path / "team", {"a.md": "# A\n\nThe text of one.\n"})
    library = fetching_every_15_minutes(tmp_path, repository, clock)
    async with running(library):
        await until(lambda: state(library, "team") is SetState.FRESH)
        # As a build left it that ended before the clock was set back by a year.
        marker = tmp_path / "data" / "sets" / "team" / "refreshed"
        ahead = datetime.now(UTC).timestamp() + 365 * 86_400
        os.utime(marker, (ahead, ahead))
        clock.advance(days=-365)
        second = repository.commit({"a.md": "# A\n\nThe text of two.\n"})

        def is_fetched() -> bool:
            clock.advance(minutes=1)
            return library.index("team").manifest.rev == second

        await until(is_fetched)


async def test_an_index_that_nobody_compared_with_its_source_for_long_is_stale(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    clock.now = datetime.now(UTC)
    repository = Repository.create(tmp_path / "team", {"a.md": "# A\n\nThe text of one.\n"})
    spec = DocumentSetSpec(id="team", source=repository.url)
    keys: dict[str, Any] = {"now": clock, "stale_after": timedelta(days=7)}
    library = library_of(tmp_path, spec, **keys)
    assert (await library.refresh("team")).state is SetState.FRESH
    built_at = library.index("team").manifest.built_at
    clock.advance(days=6)
    assert state(library, "team") is SetState.FRESH
    clock.advance(days=2, hours=1)
    status = library.status("team")
    assert status.state is SetState.STALE
    assert "8 days ago" in (status.reason or "")
    answering = await library.for_answer("team")
    assert (answering.state, answering.reason) == (SetState.STALE, status.reason)
    # A look that finds nothing new is enough, in this process or in another.
    marker = tmp_path / "data" / "sets" / "team" / "refreshed"
    os.utime(marker, (clock.now.timestamp(), clock.now.timestamp()))
    library.load()
    assert state(library, "team") is SetState.FRESH
    assert library.index("team").manifest.built_at == built_at
    assert (library.status("team").checked_at or "") > built_at
    restarted = library_of(tmp_path, spec, **keys)
    restarted.load()
    assert state(restarted, "team") is SetState.FRESH


async def test_age_alone_makes_no_local_folder_stale(tmp_path: Path, notes: Path) -> None:
    clock = FakeClock()
    clock.now = datetime.now(UTC)
    library = library_of(tmp_path, notes_spec(notes), now=clock, stale_after=timedelta(days=7))
    await library.refresh("notes")
    clock.advance(days=80)
    assert (await library.for_answer("notes")).state is SetState.FRESH


async def test_a_failed_refresh_is_tried_again_later(tmp_path: Path) -> None:
    clock = FakeClock()
    folder = tmp_path / "team"
    spec = DocumentSetSpec(id="team", source=folder.as_uri())
    library = library_of(tmp_path, spec, now=clock)
    async with running(library):
        await until(lambda: library.status("team").last_error)
        Repository.create(folder, {"a.md": "# A\n\nThe text of one.\n"})
        await until(lambda: library.running_job("team") is None)
        clock.advance(seconds=31)
        await until(lambda: state(library, "team") is SetState.FRESH)


async def test_another_process_s_snapshot_is_picked_up(tmp_path: Path, notes: Path) -> None:
    """Two libraries on one data folder stand for two worker processes."""
    spec = DocumentSetSpec(
        id="team", source=Repository.create(tmp_path / "team", {"a.md": "# A\n\nText one.\n"}).url
    )
    events: list[LibraryEvent] = []
    reader = library_of(tmp_path, spec, sync_on_start=False, on_event=events.append)
    writer = library_of(tmp_path, spec)
    async with running(reader):
        assert state(reader, "team") is SetState.EMPTY
        await writer.refresh("team")
        await until(lambda: state(reader, "team") is SetState.FRESH)
        Repository(tmp_path / "team").commit({"a.md": "# A\n\nText two.\n"})
        await writer.refresh("team")
        await until(lambda: "Text two" in text_of(reader, "team"))
        await until(lambda: len(events) == 2)
    assert [event.kind for event in events] == ["adopted", "adopted"]


async def test_of_two_processes_that_start_together_one_builds(tmp_path: Path, notes: Path) -> None:
    events: list[LibraryEvent] = []
    first = library_of(tmp_path, notes_spec(notes), on_event=events.append)
    second = library_of(tmp_path, notes_spec(notes), on_event=events.append)
    async with running(first), running(second):
        await until(lambda: state(first, "notes") is state(second, "notes") is SetState.FRESH)
        await until(lambda: first.running_job("notes") is second.running_job("notes") is None)
    assert [event.kind for event in events].count("refreshed") == 1
    assert len(list((tmp_path / "data" / "sets" / "notes" / "snapshots").iterdir())) == 1


async def test_a_snapshot_in_the_image_answers_and_the_newer_one_wins(
    tmp_path: Path, official: Repository
) -> None:
    image = DocumentLibrary([liara(official.url)], data_dir=tmp_path / "image")
    await image.refresh("liara")
    library = library_of(tmp_path, liara(official.url), image_dir=tmp_path / "image")
    library.load()
    assert state(library, "liara") is SetState.FRESH
    assert "first edition" in text_of(library, "liara")
    official.commit({"public/llms/paas/disks.md": PAGE.format("The text, second edition.")})
    await library.refresh("liara")
    again = library_of(tmp_path, liara(official.url), image_dir=tmp_path / "image")
    again.load()
    assert "second edition" in text_of(again, "liara")


async def test_a_snapshot_of_another_format_is_rebuilt_and_never_served(
    tmp_path: Path, starter: Path, official: Repository
) -> None:
    library = library_of(tmp_path, liara(official.url), starter_dir=starter)
    await library.refresh("liara")
    (manifest,) = (tmp_path / "data" / "sets" / "liara").glob("snapshots/*/manifest.json")
    content = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps(content | {"format": 0}), encoding="utf-8")
    again = library_of(tmp_path, liara(official.url), starter_dir=starter)
    again.load()
    assert state(again, "liara") is SetState.STARTER
    assert "format" in (again.status("liara").reason or "")
    async with running(again):
        await until(lambda: state(again, "liara") is SetState.FRESH)


async def test_a_damaged_snapshot_does_not_hide_the_one_in_the_image(
    tmp_path: Path, official: Repository
) -> None:
    for folder in ("image", "data"):
        await DocumentLibrary([liara(official.url)], data_dir=tmp_path / folder).refresh("liara")
    for file in (tmp_path / "data" / "sets" / "liara").glob("snapshots/*/*"):
        if file.name != "manifest.json":
            file.write_bytes(b"")
    library = library_of(tmp_path, liara(official.url), image_dir=tmp_path / "image")
    library.load()
    assert "first edition" in text_of(library, "liara")
    async with running(library):
        await until(lambda: state(library, "liara") is SetState.FRESH)


async def test_a_damaged_snapshot_gives_way_to_the_one_before_it_until_the_rebuild(
    tmp_path: Path, official: Repository
) -> None:
    library = library_of(tmp_path, liara(official.url))
    await library.refresh("liara")
    official.commit({"public/llms/paas/disks.md": PAGE.format("The text, second edition.")})
    await library.refresh("liara")
    set_dir = tmp_path / "data" / "sets" / "liara"
    current = set_dir / "snapshots" / (set_dir / "current").read_text(encoding="utf-8").strip()
    texts = (current / "texts.bytes.npy").read_bytes()
    (current / "texts.bytes.npy").write_bytes(texts.replace(b"second", b"\xffecond"))
    again = library_of(tmp_path, liara(official.url))
    again.load()
    assert "first edition" in text_of(again, "liara")
    assert "texts.bytes.npy is damaged" in (again.status("liara").reason or "")
    async with running(again):
        await until(lambda: state(again, "liara") is SetState.FRESH)
    assert "second edition" in text_of(again, "liara")


async def test_a_data_folder_that_cannot_be_written_still_serves_and_says_why(
    tmp_path: Path, starter: Path, official: Repository
) -> None:
    # A file where the folder should be refuses everyone, root as well.
    (tmp_path / "data").write_text("", encoding="utf-8")
    library = library_of(tmp_path, liara(official.url), starter_dir=starter)
    async with running(library):
        await until(lambda: library.status("liara").last_error)
    status = library.status("liara")
    assert status.state is SetState.STARTER
    assert "data folder" in (status.last_error or "")
    assert str(tmp_path) not in (status.reason or "")
    assert "Starter text" in text_of(library, "liara")


async def test_a_force_push_to_an_older_commit_is_followed_by_every_process(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "team", {"a.md": "# A\n\nThe text of one.\n"})
    first = repository.git("rev-parse", "HEAD")
    repository.commit({"a.md": "# A\n\nThe text of two.\n", "b.md": "# B\n\nA second file.\n"})
    spec = DocumentSetSpec(id="team", source=repository.url)
    writer = library_of(tmp_path, spec)
    reader = library_of(tmp_path, spec, sync_on_start=False)
    await writer.refresh("team")
    async with running(reader):
        assert len(reader.index("team").documents) == 2
        repository.git("reset", "-q", "--hard", first)
        status = await writer.refresh("team")
        assert status.index is not None
        assert status.index.rev == first
        await until(lambda: reader.index("team").manifest.rev == first)
    again = library_of(tmp_path, spec)
    again.load()
    assert list(again.index("team").documents) == ["a.md"]


async def test_another_layer_or_glob_in_the_config_makes_the_index_stale_until_it_is_rebuilt(
    tmp_path: Path,
) -> None:
    repository = Repository.create(
        tmp_path / "team", {"a.md": "# A\n\nThe text of one.\n", "b.md": "# B\n\nA second file.\n"}
    )
    spec = DocumentSetSpec(id="team", source=repository.url)
    await library_of(tmp_path, spec).refresh("team")
    edited = library_of(tmp_path, replace(spec, exclude=("b.md",)), sync_on_start=False)
    edited.load()
    assert state(edited, "team") is SetState.STALE
    assert "config" in (edited.status("team").reason or "")
    async with running(library_of(tmp_path, replace(spec, exclude=("b.md",)))) as restarted:
        await until(lambda: state(restarted, "team") is SetState.FRESH)
        assert list(restarted.index("team").documents) == ["a.md"]


async def test_what_a_snapshot_was_built_from_may_become_known_after_it(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "team", {"a.md": "# A\n\nThe text of one.\n"})
    spec = DocumentSetSpec(id="team", source=repository.url)
    await library_of(tmp_path, spec).refresh("team")
    marker = tmp_path / "data" / "sets" / "team" / "refreshed"
    built_from = await asyncio.to_thread(marker.read_text, encoding="utf-8")
    await asyncio.to_thread(marker.write_text, "of the config of before", encoding="utf-8")
    reader = library_of(tmp_path, spec, sync_on_start=False)
    async with running(reader):
        assert state(reader, "team") is SetState.STALE
        await asyncio.to_thread(marker.write_text, built_from, encoding="utf-8")
        await until(lambda: state(reader, "team") is SetState.FRESH)
