"""Frozen values that travel between the layers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Progress = Callable[[str, int, int], None]
"""Called with a stage ("fetch", "parse", "index", "embed"), what is done and the total."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A named part of a document set, chosen by path globs."""

    name: str
    desc: str = ""
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentSetSpec:
    """What the operator wants served under one id: a source, globs, layers and limits.

    `url_prefix` is the allowlist of page URLs: a document whose URL is outside is skipped.
    `base_url` makes a URL for documents that name none: base_url + path without `.md`.
    `title_from` is `auto` (front matter, first heading, file name), `heading` or `filename`.
    `questions` is a file of lay questions by page, if there is one.
    """

    id: str
    source: str
    desc: str = ""
    ref: str = "main"
    include: tuple[str, ...] = ("**/*.md",)
    exclude: tuple[str, ...] = ()
    layers: tuple[Layer, ...] = ()
    chunk_max_chars: int = 1500
    base_url: str | None = None
    url_prefix: str | None = None
    title_from: str = "auto"
    questions: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A source file that is not in the index, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading, up to the next heading of any level.

    `heading_path` holds the headings above and including its own, outermost first, without the
    document's title heading; it is empty for text under the title itself. `text` is source
    Markdown without the heading line. Lines are 1-based, of the source file, inclusive.
    """

    heading_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed source file.

    `path` is POSIX-style, relative to the source root, NFC. `text` is the whole source as
    readers may see it: decoded, without byte-order mark, with \\n line ends, as many lines as
    the file has. `lang` is `fa`, `en`, ... from front matter or from the letters of the text.
    """

    path: str
    url: str | None
    title: str
    lang: str
    text: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """The indexed unit: a section, or a part of one that is too long.

    `section` numbers the sections of the document from 0, `part` the parts of one section.
    Several chunks of a document are in file order. `page` identifies the page for the cap on
    chunks a page: the URL if there is one, else the path.
    """

    path: str
    url: str | None
    title: str
    heading_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    section: int
    part: int
    text: str

    @property
    def page(self) -> str:
        """The page that the chunk belongs to."""
        return self.url or self.path


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that a query found.

    `number` is the chunk's number in its snapshot, from 1: the citation number of search
    answers. `scores` holds what each ranked list gave, by the list's name.
    """

    number: int
    chunk: Chunk
    score: float
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to one query: hits best first.

    `matched` is false when nothing matches well; `hits` are then only the nearest. `terms` are
    the analysed words of the query, for choosing snippets. `degraded` names the reason when a
    configured list did not take part.
    """

    hits: tuple[Hit, ...]
    matched: bool
    terms: frozenset[str]
    degraded: str | None = None
