"""list_docs, ask_docs, reindex and docs://: the tools over any document set.

Each checks its arguments, asks the library or the retrieval, and renders; every text of a
document is neutralised here.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal
from urllib.parse import quote

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from app.errors import (
    DocumentSetNotFoundError,
    EmptySetError,
    InvalidQueryError,
    LayerNotFoundError,
    SourceUnavailableError,
)
from app.library.config import ALL_LAYERS, SetOptions
from app.library.library import Answering, DocumentLibrary
from app.library.status import IndexBlock, SetState, SetStatus, revision
from app.models import DocumentSetSpec, SearchResult
from app.retrieval.grounding import (
    envelope,
    neutralise_line,
    neutralise_sentence,
    neutralise_text,
    neutralise_url,
)
from app.retrieval.passages import Passage, build_passages, header
from app.retrieval.search import search
from app.server.rendering import age_in_days, config_error, dense_report

Transport = Literal["http", "stdio"]

MAX_QUESTION_CHARS = 1000
MAX_TOP_K = 50
MIN_CONTEXT_CHARS = 500
# Clients refuse answers of over 25,000 tokens; Persian has about two characters a token.
MAX_CONTEXT_CHARS = 50_000
# Far more than a client reads; a file may have millions, and many may ask for it at once.
MAX_DOCUMENT_CHARS = 400_000
# With eight passages, at most half of an answer comes from one page: a long section needs room.
PAGE_SHARE = 2
# A client over HTTP waits 30 s or more; progress cannot be told to it, so it is let go before,
# and in any case before the call's own deadline.
HTTP_REINDEX_SECONDS = 20.0
DEADLINE_SHARE = 0.8
PROGRESS_SECONDS = 0.5
MAX_SKIPPED_SHOWN = 20
MAX_COMPLETIONS = 100

NO_MATCH = (
    "Nothing in this document set matches the question well. The passages, if any, are only the "
    "nearest: say that the documents do not answer it, or ask again in other words."
)


def register(
    server: MCPServer[Any],
    library: DocumentLibrary,
    *,
    transport: Transport,
    reindex_enabled: bool,
    tool_timeout_seconds: float = 30,
) -> None:
    """Add the tools and the resource template to a server.

    Over HTTP no folder of this machine is shown, and reindex returns before it is done.
    """
    wait_seconds = min(HTTP_REINDEX_SECONDS, tool_timeout_seconds * DEADLINE_SHARE)
    tools = DocsTools(library, transport, wait_seconds)
    read_only = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    server.tool(annotations=read_only, structured_output=False)(tools.list_docs)
    server.tool(annotations=read_only, structured_output=False)(tools.ask_docs)
    if reindex_enabled:
        rebuilding = ToolAnnotations(
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=True,
        )
        server.tool(annotations=rebuilding, structured_output=False)(tools.reindex)
    server.resource(
        "docs://{docs}/{+path}",
        name="document",
        title="A source file of a document set",
        description="The whole file that a citation of ask_docs names, as it was indexed.",
        mime_type="text/markdown",
    )(tools.read_document)


class DocsTools:
    """The tools over one library, as one transport shows them."""

    def __init__(
        self,
        library: DocumentLibrary,
        transport: Transport,
        wait_seconds: float = HTTP_REINDEX_SECONDS,
    ) -> None:
        """Answer from `library`; over HTTP reindex waits for so many seconds."""
        self._library = library
        self._wait_seconds = wait_seconds
        self._over_http = transport == "http"

    async def list_docs(self) -> str:
        """List the document sets that can be asked: what each holds, its layers and its index.

        Call it first when you do not know which `docs` or `layer` to pass to ask_docs. Each set
        shows whether it is the default, how old its index is (`state`, `rev`, `built_at`), and
        which files were skipped and why. `index` is null for a set that was never built.
        """
        library = self._library
        sets = [self._described(set_id) for set_id in library.ids]
        answer: dict[str, Any] = {"default_docs": library.default_docs, "docs": sets}
        if library.config.problems:
            answer["left_out"] = list(library.config.problems)
        if library.config_error:
            # The library's own sentence names files of this machine.
            told = config_error(library) if self._over_http else library.config_error
            answer["config_error"] = told
        return _json(answer)

    async def ask_docs(
        self,
        question: Annotated[
            str,
            Field(description="What you want to know, in any language, as a question or words."),
        ],
        docs: Annotated[
            str,
            Field(description="Id of the document set, from list_docs. Empty: the default set."),
        ] = "",
        layer: Annotated[
            str,
            Field(description="A layer of the set, from list_docs, or `all`."),
        ] = ALL_LAYERS,
        top_k: Annotated[
            int | None,
            Field(ge=1, le=MAX_TOP_K, description="Most passages. Empty: the set's own default."),
        ] = None,
        max_context_chars: Annotated[
            int | None,
            Field(
                ge=MIN_CONTEXT_CHARS,
                le=MAX_CONTEXT_CHARS,
                description="Most characters of passages. Empty: the set's own default.",
            ),
        ] = None,
    ) -> str:
        """Find the passages of a document set that answer a question.

        Returns JSON: `answer_context` holds whole passages, each headed `[n] path › Heading`, and
        `citations` says where each comes from. Write the answer from the passages alone and cite
        them as [n]. `state` says whether the index is current. If the passages do not answer the
        question, say so. A whole file can be read at the `uri` of its citation.
        """
        set_id = docs.strip() or self._default()
        options = self._library.options(set_id)
        asked, wanted = _question(question), _layer(layer, options.spec)
        answering = await self._library.for_answer(set_id)
        most = top_k or options.top_k
        dense = await self._library.dense_leg(set_id, answering.index, asked)
        find = partial(
            search,
            answering.index,
            asked,
            top_k=most,
            layer=wanted,
            max_per_page=max(most // PAGE_SHARE, 2),
            dense=dense,
        )
        budget = min(max_context_chars or options.max_context_chars, MAX_CONTEXT_CHARS)

        def answer() -> str:
            result = find()
            passages = build_passages(answering.index, result.hits, budget)
            return self._rendered(set_id, wanted or ALL_LAYERS, answering, result, passages)

        return await asyncio.to_thread(answer)

    async def reindex(
        self,
        context: Context[Any, Any],
        docs: Annotated[
            str,
            Field(description="Id of the document set, from list_docs. Empty: the default set."),
        ] = "",
    ) -> str:
        """Fetch the source of a document set and rebuild its index.

        Needed when a git source has changed; local folders are followed without it. Joins a
        rebuild that runs already; the old index answers meanwhile. If the answer says
        `building`, look at list_docs again after a while.
        """
        set_id = docs.strip() or self._default()
        self._library.spec(set_id)
        job = asyncio.ensure_future(self._library.refresh(set_id))
        if self._over_http:
            await asyncio.wait({job}, timeout=self._wait_seconds)
        else:
            await self._tell_progress(context, set_id, job)
        status = self._library.status(set_id)
        if job.done() and status.last_error:
            still = "" if status.index is None else " The index of before still answers."
            raise SourceUnavailableError(f"{set_id!r} was not rebuilt: {status.last_error}.{still}")
        answer: dict[str, Any] = {"docs": set_id, "state": status.state, "index": None}
        if not job.done():
            answer["state"] = SetState.BUILDING
            answer["note"] = "The rebuild goes on; list_docs shows when it is done."
        if status.index is not None:
            answer["index"] = self._block(status.index)
        return _json(answer)

    async def read_document(self, docs: str, path: str) -> str:
        """Return one file of a document set, whole, as it was indexed."""
        index = self._library.index(docs)

        def read() -> str:
            text = index.source(path)
            shown = neutralise_text(text[:MAX_DOCUMENT_CHARS])
            answer = envelope(shown, set_id=docs, rev=revision(index.manifest))
            if len(text) <= MAX_DOCUMENT_CHARS:
                return answer
            return (
                f"{answer}\n[cut: the first {MAX_DOCUMENT_CHARS} of {len(text)} characters; "
                "ask_docs finds passages in the rest]"
            )

        # Not on the event loop: cleaning a long file takes seconds.
        return await asyncio.to_thread(read)

    def complete(self, argument: str, begun: str, docs: str | None = None) -> list[str]:
        """Return values for `docs`, `layer` or `path` that begin with what was typed.

        Layers and paths are those of the set `docs`, or of the default one.
        """
        if argument == "docs":
            return _beginning(begun, self._library.ids)
        set_id = docs or self._default()
        try:
            if argument == "layer":
                names = [layer.name for layer in self._library.spec(set_id).layers]
                return _beginning(begun, [ALL_LAYERS, *names])
            if argument == "path":
                # A client may show these as they are.
                paths = self._library.index(set_id).documents
                return _beginning(begun, paths, is_shown=_is_harmless)
        except (DocumentSetNotFoundError, EmptySetError):
            return []
        return []

    def _default(self) -> str:
        default = self._library.default_docs
        if default is None:
            raise DocumentSetNotFoundError("This server has no document set.")
        return default

    def _described(self, set_id: str) -> dict[str, Any]:
        options, status = self._library.options(set_id), self._library.status(set_id)
        spec = options.spec
        return {
            "id": set_id,
            "desc": spec.desc,
            "default": set_id == self._library.default_docs,
            "layers": [{"id": layer.name, "desc": layer.desc} for layer in spec.layers],
            "layer_filters": [ALL_LAYERS, *(layer.name for layer in spec.layers)],
            **_resolved(options),
            "state": status.state,
            "reason": status.reason and neutralise_sentence(status.reason),
            "building": status.building,
            "checked_at": status.checked_at,
            "dense": dense_report(self._library.vector_status(set_id)),
            "index": None if status.index is None else self._block(status.index),
        }

    def _block(self, index: IndexBlock) -> dict[str, Any]:
        block: dict[str, Any] = {
            "origin": index.origin,
            "root": None if self._over_http else index.root,
            "rev": index.rev,
            "files": index.files,
            "chunks": index.chunks,
            "layers": dict(index.layers),
            "state": index.state,
            "built_at": index.built_at,
            "skipped": [
                {"path": neutralise_line(item.path), "reason": neutralise_line(item.reason)}
                for item in index.skipped[:MAX_SKIPPED_SHOWN]
            ],
        }
        if len(index.skipped) > MAX_SKIPPED_SHOWN:
            block["skipped_count"] = len(index.skipped)
        return block

    def _rendered(
        self,
        set_id: str,
        layer: str,
        answering: Answering,
        result: SearchResult,
        passages: tuple[Passage, ...],
    ) -> str:
        manifest = answering.index.manifest
        rev = revision(manifest)
        answer: dict[str, Any] = {
            "docs": set_id,
            "layer": layer,
            "root": None if self._over_http else manifest.root,
            "rev": rev,
            "state": answering.state,
            "built_at": manifest.built_at,
            "checked_at": answering.checked_at,
            "age_days": age_in_days(manifest.rev_date or manifest.built_at),
        }
        if answering.reason:
            answer["reason"] = neutralise_sentence(answering.reason)
        if not result.matched or not passages:
            answer["note"] = NO_MATCH
        if result.degraded:
            answer["degraded"] = result.degraded
        body = "\n\n".join(_passage_text(passage) for passage in passages)
        answer["answer_context"] = envelope(body, set_id=set_id, rev=rev)
        answer["citations"] = [_citation(passage, set_id, rev) for passage in passages]
        return _json(answer)

    async def _tell_progress(
        self, context: Context[Any, Any], set_id: str, job: "asyncio.Future[SetStatus]"
    ) -> None:
        told = None
        while not job.done():
            await asyncio.wait({job}, timeout=PROGRESS_SECONDS)
            running = self._library.running_job(set_id)
            if running is None:
                continue
            now = (running.stage, running.done, running.total)
            if now != told:
                told = now
                await context.report_progress(running.done, running.total or None, running.stage)


def document_uri(docs: str, path: str) -> str:
    """Return the address of a source file, as `read_document` takes it."""
    return f"docs://{quote(docs, safe='')}/{quote(path, safe='/')}"


def _question(question: str) -> str:
    text = question.strip()
    if not text:
        raise InvalidQueryError("The question is empty: ask in a sentence or a few words.")
    if len(text) > MAX_QUESTION_CHARS:
        raise InvalidQueryError(
            f"The question has {len(text)} characters; the limit is {MAX_QUESTION_CHARS}. "
            "Ask for the point in question only."
        )
    return text


def _layer(layer: str, spec: DocumentSetSpec) -> str | None:
    """Return the layer's name as it is indexed; None for the whole set."""
    name = layer.strip().casefold()
    if name in ("", ALL_LAYERS):
        return None
    names = [item.name for item in spec.layers]
    if name not in names:
        known = ", ".join([ALL_LAYERS, *names])
        raise LayerNotFoundError(
            f"The document set {spec.id!r} has no layer {layer[:100]!r}. Layers: {known}."
        )
    return name


def _resolved(options: SetOptions) -> dict[str, Any]:
    """Return the values in effect, wherever they come from; the source may be a secret."""
    spec = options.spec
    return {
        "ref": spec.ref,
        "include": list(spec.include),
        "exclude": list(spec.exclude),
        "embedding_model": options.embedding_model,
        "top_k": options.top_k,
        "chunk_max_chars": spec.chunk_max_chars,
        "max_context_chars": options.max_context_chars,
        "base_url": spec.base_url,
        "title_from": spec.title_from,
        "refresh": options.refresh.text if options.refresh else None,
        "webhook": options.webhook_secret_env is not None,
    }


def _passage_text(passage: Passage) -> str:
    # Path and heading come from the documents as much as the text does.
    path, heading = neutralise_line(passage.path), neutralise_line(passage.heading)
    return f"{header(passage.number, path, heading)}\n{neutralise_text(passage.text)}"


def _citation(passage: Passage, set_id: str, rev: str) -> dict[str, Any]:
    citation: dict[str, Any] = {
        "n": passage.number,
        "path": neutralise_line(passage.path),
        "heading": neutralise_line(passage.heading),
        "anchor": neutralise_line(passage.anchor),
        "lines": f"{passage.start_line}-{passage.end_line}",
        "rev": rev,
        "uri": document_uri(set_id, passage.path),
        "score": round(passage.score, 4),
    }
    url = neutralise_url(passage.url) if passage.url else None
    if url is not None:
        citation["url"] = url
    return citation


def _beginning(
    begun: str, values: Iterable[str], is_shown: Callable[[str], bool] = bool
) -> list[str]:
    folded = begun.casefold()
    found = (value for value in values if value.casefold().startswith(folded) and is_shown(value))
    return list(islice(found, MAX_COMPLETIONS))


def _is_harmless(path: str) -> bool:
    return neutralise_line(path, len(path)) == path


def _json(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False, indent=1)
