"""The whole document path on one screen: fetch, list, parse, chunk, index, publish."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.errors import SourceUnavailableError, UnusableFileError
from app.index.analyzer import ANALYZER_VERSION
from app.index.builder import BUILDER_VERSION, IndexedDocument, build_index
from app.index.publication import prune, publish
from app.index.snapshot import FORMAT, Manifest, SearchIndex
from app.ingestion.chunker import CHUNKER_VERSION, chunk_document
from app.ingestion.markdown import MARKDOWN_VERSION, parse_document
from app.ingestion.questions_file import read_questions
from app.ingestion.sources import (
    FileListing,
    SourceFile,
    SourceTree,
    display_source,
    fetch_source,
    list_files,
    path_matcher,
    read_file,
    stat_fingerprint,
)
from app.models import DocumentSetSpec, Progress, Skipped

FETCH_TIMEOUT_SECONDS = 300.0
# The path of a page URL: what a site's router produces, and nothing that could steer a client.
_SLUG_PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*(?:/[A-Za-z0-9][A-Za-z0-9._~-]*)*/?")


def build_snapshot(
    spec: DocumentSetSpec,
    set_dir: Path,
    *,
    previous: SearchIndex | None = None,
    progress: Progress | None = None,
    starter: bool = False,
    ca_bundle: Path | None = None,
) -> SearchIndex:
    """Build the index of a document set and publish it under `set_dir`; returns it loaded.

    Files that `previous` holds unchanged are neither parsed nor analysed again. When nothing at
    all changed, `previous` itself comes back. The caller holds the set's build lock. `ca_bundle`
    names the certificate authorities that git trusts.

    Raises:
        SourceUnavailableError: The source cannot be read; what is published stays as it is.
        OSError: `set_dir` cannot be written.
    """
    index = ingest(
        spec,
        set_dir / "checkout",
        previous=previous,
        progress=progress,
        starter=starter,
        ca_bundle=ca_bundle,
    )
    if index is previous:
        return index
    folder = publish(index, set_dir)
    prune(set_dir)
    return SearchIndex.load(folder)


def ingest(
    spec: DocumentSetSpec,
    checkout: Path,
    *,
    previous: SearchIndex | None = None,
    progress: Progress | None = None,
    starter: bool = False,
    ca_bundle: Path | None = None,
) -> SearchIndex:
    """Build the index of a document set in memory; `checkout` is where a git source is kept.

    Raises:
        SourceUnavailableError: The source cannot be read.
    """
    report = progress or _no_progress
    tree = fetch_source(
        spec.source,
        spec.ref,
        spec.include,
        checkout,
        timeout_seconds=FETCH_TIMEOUT_SECONDS,
        ca_bundle=ca_bundle,
        progress=progress,
    )
    listing = list_files(tree, spec.include, spec.exclude)
    recipe = _recipe(spec)
    reusable = previous if previous is not None and previous.manifest.recipe == recipe else None
    documents, skipped = _read_documents(spec, tree, listing, reusable, report)
    if not documents:
        # An index of nothing would push out the pages that answer now.
        raise SourceUnavailableError(
            f"{display_source(spec.source)} holds no file that can be used: none of"
            f" {', '.join(spec.include)} gives a page ({len(skipped)} skipped)"
        )
    questions, unusable = read_questions(Path(spec.questions)) if spec.questions else ({}, [])
    skipped.extend(unusable)
    manifest = _manifest(spec, tree, listing, recipe, documents, skipped, questions, starter)
    if previous is not None and previous.manifest.fingerprint == manifest.fingerprint:
        return previous
    report("index", 0, len(documents))
    index = build_index(manifest, documents, reusable, questions)
    report("index", len(documents), len(documents))
    return index


def _no_progress(stage: str, done: int, total: int) -> None:
    """Take a report and do nothing."""


def _read_documents(
    spec: DocumentSetSpec,
    tree: SourceTree,
    listing: FileListing,
    reusable: SearchIndex | None,
    report: Progress,
) -> tuple[list[IndexedDocument], list[Skipped]]:
    reader = _Reader(spec, tree, reusable, _LayerFinder(spec))
    documents, skipped = [], list(listing.skipped)
    for done, file in enumerate(listing.files, start=1):
        try:
            documents.append(reader.read(file))
        except UnusableFileError as error:
            skipped.append(Skipped(file.path, str(error)))
        report("parse", done, len(listing.files))
    return documents, sorted(skipped, key=lambda item: item.path)


class _LayerFinder:
    """Finds the layer of a path: the first whose globs match, else none."""

    def __init__(self, spec: DocumentSetSpec) -> None:
        self._layers = [(layer.name, path_matcher(layer.include)) for layer in spec.layers]

    def __call__(self, path: str) -> str | None:
        return next((name for name, matches in self._layers if matches(path)), None)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns one source file into a document with chunks, or takes it from the previous index."""

    spec: DocumentSetSpec
    tree: SourceTree
    reusable: SearchIndex | None
    layer_of: _LayerFinder

    def read(self, file: SourceFile) -> IndexedDocument:
        raw = read_file(file, self.tree)
        digest = hashlib.sha256(raw).hexdigest()
        return self._unchanged(file.path, digest) or self._parsed(file.path, digest, raw)

    def _unchanged(self, path: str, digest: str) -> IndexedDocument | None:
        index = self.reusable
        entry = index.documents.get(path) if index is not None else None
        if index is None or entry is None or entry.digest != digest:
            return None
        return IndexedDocument(
            path=path,
            url=entry.url,
            title=entry.title,
            lang=entry.lang,
            layer=self.layer_of(path),
            digest=digest,
            text=index.source(path),
            chunks=tuple(index.chunk(number) for number in index.chunks_of(path)),
            unchanged=True,
        )

    def _parsed(self, path: str, digest: str, raw: bytes) -> IndexedDocument:
        document = parse_document(
            path, raw, base_url=self.spec.base_url, title_from=self.spec.title_from
        )
        _check_url(document.url, self.spec.url_prefix)
        chunks = chunk_document(document, self.spec.chunk_max_chars)
        if not chunks:
            raise UnusableFileError("no text besides headings and links")
        return IndexedDocument(
            path=path,
            url=document.url,
            title=document.title,
            lang=document.lang,
            layer=self.layer_of(path),
            digest=digest,
            text=document.text,
            chunks=chunks,
        )


def _check_url(url: str | None, prefix: str | None) -> None:
    """Refuse a document whose page URL is not on the allowlist of its document set."""
    if prefix is None:
        return
    if url is None:
        raise UnusableFileError("it names no page URL")
    path = url.removeprefix(prefix)
    if not url.startswith(prefix) or not (path == "" or _SLUG_PATH.fullmatch(path)):
        raise UnusableFileError(f"its page URL is not below {prefix}")


def _recipe(spec: DocumentSetSpec) -> str:
    """Identify everything but the files themselves that shapes documents, chunks and words."""
    return _digest(
        {
            "format": FORMAT,
            "markdown": MARKDOWN_VERSION,
            "chunker": CHUNKER_VERSION,
            "analyzer": ANALYZER_VERSION,
            "base_url": spec.base_url,
            "url_prefix": spec.url_prefix,
            "title_from": spec.title_from,
            "chunk_max_chars": spec.chunk_max_chars,
        }
    )


def _manifest(
    spec: DocumentSetSpec,
    tree: SourceTree,
    listing: FileListing,
    recipe: str,
    documents: list[IndexedDocument],
    skipped: list[Skipped],
    questions: Mapping[str, tuple[str, ...]],
    starter: bool,
) -> Manifest:
    fingerprint = _digest(
        {
            "recipe": recipe,
            "builder": BUILDER_VERSION,
            "set": spec.id,
            "source": display_source(spec.source),
            "rev": tree.rev,
            "starter": starter,
            "files": [[item.path, item.digest, item.layer] for item in documents],
            "skipped": [asdict(item) for item in skipped],
            "questions": questions,
        }
    )
    return Manifest(
        format=FORMAT,
        analyzer=ANALYZER_VERSION,
        set_id=spec.id,
        fingerprint=fingerprint,
        recipe=recipe,
        origin=tree.origin,
        root=str(tree.root),
        source=display_source(spec.source),
        rev=tree.rev,
        rev_date=tree.rev_date,
        built_at=datetime.now(UTC).isoformat(timespec="seconds"),
        files=len(documents),
        chunks=sum(len(item.chunks) for item in documents),
        layers=_layer_counts(spec, documents),
        languages=dict(Counter(item.lang for item in documents)),
        skipped=tuple(skipped),
        starter=starter,
        stat_fingerprint=stat_fingerprint(listing),
    )


def _layer_counts(spec: DocumentSetSpec, documents: list[IndexedDocument]) -> dict[str, int]:
    counts = Counter(item.layer for item in documents)
    return {layer.name: counts[layer.name] for layer in spec.layers}


def _digest(content: Mapping[str, object]) -> str:
    encoded = json.dumps(content, sort_keys=True, ensure_ascii=True).encode("ascii")
    return hashlib.sha256(encoded).hexdigest()[:32]
