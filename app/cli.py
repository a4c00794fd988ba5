"""The command line: each command parses, calls and prints; no more."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from tqdm import tqdm

from app import __version__
from app.data_files import data_path
from app.errors import DocsError
from app.evaluation.evaluate import evaluate
from app.evaluation.judged import read_judged
from app.evaluation.lay_questions import corpus_texts, shipped_faults
from app.index.dense import DenseLeg
from app.liara.corpus import LIARA_SET_ID
from app.library.library import DocumentLibrary
from app.library.status import SetState, SetStatus
from app.models import DocumentSetSpec, Hit
from app.retrieval.explain import explain
from app.retrieval.grounding import neutralise_line, neutralise_text
from app.retrieval.search import PARTS, search
from app.retrieval.snippets import snippet
from app.server import doctor
from app.server.application import (
    create_app,
    leaves_out_config,
    leaves_out_reindex,
    open_library,
    serve_stdio,
)
from app.server.listener import uvicorn_config
from app.server.logging_setup import configure_logging
from app.server.metrics import Metrics
from app.server.security import Allowlist
from app.settings import Settings, describe

_FAILED, _WRONG_USAGE, _INTERRUPTED = 1, 2, 130
_MAX_SKIPPED_SHOWN = 20
_PARTS_HELP = f"ours without these parts beside it, of: {', '.join(sorted(PARTS))}"

Command = Callable[[argparse.Namespace, Settings], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 well, 1 failed, 2 wrong settings or usage."""
    arguments = _parser().parse_args(argv)
    run: Command = arguments.run
    try:
        settings = _settings(arguments)
        configure_logging(settings.log_level)
        return run(arguments, settings)
    except DocsError as error:
        print(f"{doctor.Severity.ERROR:<8} {error}", file=sys.stderr)
        return _FAILED if run is _doctor else _WRONG_USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter must not flush into the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="liara-docs-mcp",
        description="A documentation server for coding assistants. Without a command it speaks"
        " MCP on standard input and output.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("--http", action="store_true", help="the same as the command serve")
    _add_common(parser)
    _add_address(parser)
    parser.set_defaults(run=_stdio_or_http)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, run: Command, summary: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary)
        _add_common(command, argparse.SUPPRESS)
        command.set_defaults(run=run)
        return command

    _add_address(add("serve", _serve, "serve MCP over HTTP"), argparse.SUPPRESS)
    add("stdio", _stdio, "serve MCP on standard input and output")
    sync = add("sync", _sync, "fetch document sets and build their indexes")
    sync.add_argument("ids", metavar="ID", nargs="*", help="document sets; all without any")
    sync.add_argument("--source", help="folder or git URL to build from instead")
    sync.add_argument("--ref", help="branch, tag or commit instead")
    find = add("search", _search, "search a document set and print what it finds")
    find.add_argument("query", metavar="QUERY", nargs="+")
    find.add_argument("--docs", metavar="ID", help="document set; the default one without")
    find.add_argument("-k", type=int, default=5, help="number of hits (default 5)")
    find.add_argument("--explain", action="store_true", help="show what each ranked list gave")
    judge = add("eval", _eval, "measure retrieval with judged questions")
    judge.add_argument("questions", metavar="QUESTIONS.jsonl", type=Path, nargs="+")
    judge.add_argument("--docs", metavar="ID", help="document set; the default one without")
    judge.add_argument("-k", type=int, default=8, help="number of hits a question (default 8)")
    judge.add_argument("--baseline", action="store_true", help="the predecessor's method beside it")
    judge.add_argument("--without", metavar="PART", nargs="+", default=[], help=_PARTS_HELP)
    judge.add_argument("--misses", action="store_true", help="list what was not found")
    asked = add("questions", _questions, "count the lay questions of a document set")
    asked.add_argument("--docs", metavar="ID", help="document set; the default one without")
    asked.add_argument("--missing", action="store_true", help="list the pages without questions")
    check = add("check-questions", _check_questions, "check the shipped lay questions")
    check.add_argument("--judged", metavar="FILE", type=Path, nargs="*", default=[])
    check.add_argument("--corpus", metavar="FOLDER", type=Path, help="the official docs")
    add("doctor", _doctor, "check settings, folders and document sets")
    return parser


def _add_common(parser: argparse.ArgumentParser, default: Any = None) -> None:
    parser.add_argument("--config", default=default, help="JSON config, instead of DOCS_CONFIG")


def _add_address(parser: argparse.ArgumentParser, default: Any = None) -> None:
    parser.add_argument("--host", default=default, help="address to bind, instead of HOST")
    parser.add_argument("--port", default=default, help="port to bind, instead of PORT")


def _settings(arguments: argparse.Namespace) -> Settings:
    given = {"HOST": arguments.host, "PORT": arguments.port, "DOCS_CONFIG": arguments.config}
    return Settings.from_env(overrides={name: value for name, value in given.items() if value})


def _stdio_or_http(arguments: argparse.Namespace, settings: Settings) -> int:
    return (_serve if arguments.http else _stdio)(arguments, settings)


def _serve(_arguments: argparse.Namespace, settings: Settings) -> int:
    config = uvicorn_config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        head_timeout_seconds=settings.request_timeout_seconds,
        shutdown_seconds=settings.shutdown_seconds,
    )
    # uvicorn raises the signal again once it has shut down; a stop on request is no failure.
    signal.signal(signal.SIGTERM, _exit_well)
    uvicorn.Server(config).run()
    return 0


def _exit_well(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _stdio(_arguments: argparse.Namespace, settings: Settings) -> int:
    asyncio.run(serve_stdio(settings))
    return 0


def _sync(arguments: argparse.Namespace, settings: Settings) -> int:
    ids = arguments.ids
    if (arguments.source or arguments.ref) and not ids:
        ids = [LIARA_SET_ID]

    def change(spec: DocumentSetSpec) -> DocumentSetSpec:
        if spec.id not in ids:
            return spec
        return replace(spec, source=arguments.source or spec.source, ref=arguments.ref or spec.ref)

    library = open_library(settings, Metrics(), change=change)
    library.load()
    statuses = asyncio.run(_refresh(library, ids or library.ids))
    return _FAILED if any(status.last_error for status in statuses) else 0


async def _refresh(library: DocumentLibrary, ids: Sequence[str]) -> list[SetStatus]:
    statuses = []
    try:
        for set_id in ids:
            with closing(StageBar(set_id)) as bar:
                status = await library.refresh(set_id, bar.show)
            print("\n".join(_described(status)))
            dense = library.vector_status(set_id)
            if dense is not None:
                print(f"  vectors of {dense.model}: {dense.message or dense.state}")
            statuses.append(status)
    finally:
        await library.aclose()
    return statuses


class StageBar:
    """A progress bar on a terminal, starting anew with each stage; nothing elsewhere."""

    def __init__(self, set_id: str) -> None:
        """Name the set; the bar shows with the first stage."""
        self._set_id = set_id
        self._stage = ""
        self._bar: tqdm[Any] | None = None

    def show(self, stage: str, done: int, total: int) -> None:
        """Take what a build reports."""
        bar = self._bar
        if bar is None or stage != self._stage:
            self.close()
            # disable=None: only where standard error is a terminal.
            fresh: tqdm[Any] = tqdm(desc=f"{self._set_id} {stage}", disable=None)
            self._stage, self._bar, bar = stage, fresh, fresh
        bar.total = total or None
        bar.update(done - bar.n)

    def close(self) -> None:
        """Leave the bar of the last stage as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _described(status: SetStatus) -> Iterator[str]:
    reason = f": {status.reason}" if status.reason else ""
    yield f"{status.id}: {status.state}{reason}"
    index = status.index
    if index is None:
        return
    revision = f", revision {index.rev[:12]}" if index.rev else ""
    yield f"  {index.files} files, {index.chunks} chunks{revision}, built {index.built_at}"
    for skipped in index.skipped[:_MAX_SKIPPED_SHOWN]:
        yield f"  skipped {neutralise_line(skipped.path)}: {neutralise_line(skipped.reason)}"
    if len(index.skipped) > _MAX_SKIPPED_SHOWN:
        yield f"  and {len(index.skipped) - _MAX_SKIPPED_SHOWN} more skipped"


def _search(arguments: argparse.Namespace, settings: Settings) -> int:
    library, set_id = _open_library(arguments, settings)
    index = library.index(set_id)
    query = " ".join(arguments.query)
    if arguments.explain:
        print("\n".join(explain(index, query)))
    dense = asyncio.run(_dense_legs(library, set_id, [query]))[query]
    result = search(index, query, top_k=max(1, arguments.k), dense=dense)
    if result.degraded:
        print(f"degraded: {result.degraded}", file=sys.stderr)
    if not result.matched:
        print("nothing matches well", file=sys.stderr)
    for hit in result.hits:
        print(_shown_hit(hit, result.terms))
        if arguments.explain:
            print(f"    {_shown_scores(hit)}\n")
    return 0


def _eval(arguments: argparse.Namespace, settings: Settings) -> int:
    library, set_id = _open_library(arguments, settings)
    index = library.index(set_id)
    questions = [question for file in arguments.questions for question in read_judged(file)]
    legs = asyncio.run(_dense_legs(library, set_id, [item.query for item in questions]))
    for reason in {leg.degraded for leg in legs.values() if leg.degraded}:
        print(f"degraded: {reason}", file=sys.stderr)
    for line in evaluate(
        index,
        questions,
        top_k=max(1, arguments.k),
        baseline=arguments.baseline,
        without=frozenset(arguments.without),
        misses=arguments.misses,
        legs=legs,
    ):
        print(line)
    return 0


def _questions(arguments: argparse.Namespace, settings: Settings) -> int:
    library, set_id = _open_library(arguments, settings)
    index = library.index(set_id)
    missing = [index.pages[number] for number in index.questions.pages_without()]
    if arguments.missing:
        for page in missing:
            print(neutralise_line(page))
    else:
        asked = len(index.pages) - len(missing)
        print(f"{len(index.questions)} questions on {asked} of {len(index.pages)} pages")
    return 0


def _check_questions(arguments: argparse.Namespace, _settings: Settings) -> int:
    files = [*sorted(data_path("eval").glob("*.jsonl")), *arguments.judged]
    faults = list(
        shipped_faults(
            judged=[question.query for file in files for question in read_judged(file)],
            corpus=corpus_texts(arguments.corpus) if arguments.corpus else (),
        )
    )
    print("\n".join(faults) or "the lay questions are in order")
    return _FAILED if faults else 0


def _open_library(arguments: argparse.Namespace, settings: Settings) -> tuple[DocumentLibrary, str]:
    """Return the loaded library and the set that a command is about."""
    library = open_library(settings, Metrics())
    library.load()
    set_id = arguments.docs or library.default_docs or LIARA_SET_ID
    if library.status(set_id).state is SetState.STARTER:
        print("from the starter pages; `sync` fetches the official docs", file=sys.stderr)
    return library, set_id


async def _dense_legs(
    library: DocumentLibrary, set_id: str, queries: Sequence[str]
) -> dict[str, DenseLeg]:
    """Return what dense search adds to each query; the library's connections are closed then."""
    index = library.index(set_id)
    try:
        await library.prepare_dense(set_id)
        return {query: await library.dense_leg(set_id, index, query) for query in queries}
    finally:
        await library.aclose()


def _shown_scores(hit: Hit) -> str:
    lists = ", ".join(f"{name} {score:.2f}" for name, score in hit.scores.items())
    return f"score {hit.score:.3f}: {lists}"


def _shown_hit(hit: Hit, terms: frozenset[str]) -> str:
    chunk = hit.chunk
    heading = " › ".join(map(neutralise_line, (chunk.title, *chunk.heading_path)))
    anchor = f"#{chunk.anchor}" if chunk.anchor and chunk.url else ""
    where = neutralise_line(chunk.path) if chunk.url is None else f"{chunk.url}{anchor}"
    text = neutralise_text(snippet(chunk.text, terms))
    return f"[{hit.number}] {heading} — {where}\n{text}\n"


def _doctor(_arguments: argparse.Namespace, settings: Settings) -> int:
    findings = []
    for finding in _findings(settings):
        print(finding)
        findings.append(finding)
    return _FAILED if any(f.severity is doctor.Severity.ERROR for f in findings) else 0


def _findings(settings: Settings) -> Iterator[doctor.Finding]:
    yield from doctor.check_settings(describe(settings))
    allowlist = Allowlist.build(settings.allowed_hosts, settings.allowed_origins, settings.host)
    yield from doctor.check_allowlist(allowlist, settings.public_url)
    yield from doctor.check_git()
    yield from doctor.check_data_dir(settings.data_dir)
    if leaves_out_config(settings):
        yield doctor.Finding(
            doctor.Severity.WARNING,
            "the address is public: `serve` leaves out the sets of the config without MCP_TOKEN"
            " or ALLOW_ANONYMOUS=1",
        )
    if leaves_out_reindex(settings):
        yield doctor.Finding(
            doctor.Severity.WARNING,
            "the address is public: `serve` leaves out the tool reindex without MCP_TOKEN",
        )
    yield from doctor.check_sets(open_library(settings, Metrics()))
