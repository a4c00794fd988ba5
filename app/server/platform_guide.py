"""The answer of platform_docs: a platform's pages, the liara.json reference, what needs found.

Our own facts stand before the envelope, document text inside.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.liara.manifest_reference import KeyReference, liara_json_reference
from app.liara.platforms import AliasNote, Platform
from app.models import SearchResult
from app.retrieval.grounding import neutralise_line
from app.retrieval.pages import page_of
from app.server.rendering import (
    MAX_ANSWER_CHARS,
    MIN_EXCERPT_CHARS,
    Corpus,
    assemble,
    degraded_lines,
    excerpt,
    hit_block,
    hit_header,
    known_pages,
    page_list,
    source_line,
)

_DOCS_BASE = "https://docs.liara.ir"
_ROLES = {
    "getting_started": "Getting started",
    "deploy": "Deploy",
    "environment": "Environment variables",
    "disk": "Disks",
    "domain": "Domains",
    "database": "Databases",
    "troubleshooting": "Troubleshooting",
}
_MAX_LISTED = 8
# How the room of a platform guide is shared out once the reference has taken its own.
_NEEDS_SHARE = 0.45
_DEPLOY_SHARE = 0.35


@dataclass(frozen=True, slots=True)
class NeedAnswer:
    """One stated need, cut to its limit, and what a search for it found."""

    need: str
    result: SearchResult | None


def platform_guide(
    corpus: Corpus,
    platform: Platform,
    alias: AliasNote | None,
    needs: Sequence[NeedAnswer],
    notes: Sequence[str],
) -> str:
    """Return a platform's pages, the liara.json reference and what was found for each need."""
    degraded = next((line for n in needs if n.result for line in degraded_lines(n.result)), None)
    head = [
        source_line(corpus),
        *([degraded] if degraded else []),
        *_platform_facts(platform, alias),
        *notes,
        "",
        *reference_lines(platform),
        "",
    ]
    tail = [
        "Excerpts are parts of pages: read_page(url=…) shows the whole page. Write the liara.json, "
        "then check it with validate_liara_json. Cite the page of each claim."
    ]
    empty = assemble(corpus, head, [], tail)
    room = MAX_ANSWER_CHARS - len(empty) - 400
    needs_room = int(room * _NEEDS_SHARE) if needs else 0
    need_blocks = [_need_block(item, needs_room // len(needs)) for item in needs]
    room -= sum(len(block) + 2 for block in need_blocks)
    blocks = [*_role_blocks(corpus, platform, room), *need_blocks]
    return assemble(corpus, head, blocks, tail)


def _platform_facts(platform: Platform, alias: AliasNote | None) -> Iterator[str]:
    yield f'Platform: {platform.title} ("platform": "{platform.name}" in liara.json).'
    if alias is not None:
        yield f"Note: {alias.note} Page: {alias.page}"
    port = f"Port: {platform.default_port} unless set." if platform.default_port else "Port:"
    yield " ".join(part for part in (port, platform.port_note) if part)
    disk = {
        "relative": "mountTo is a folder relative to the project, such as uploads.",
        "absolute": "mountTo is an absolute path in the image.",
    }
    yield f"Disks: {disk[platform.disk_path] if platform.disk_path else 'not of use here.'}"
    cron = "the cron key is run." if platform.runs_cron else "the cron key is not run."
    yield f"Cron: {cron}" + (f" Page: {platform.cron_page}" if platform.cron_page else "")


def reference_lines(platform: Platform) -> Iterator[str]:
    """Yield the complete liara.json reference for a platform, one line a key."""
    keys = liara_json_reference(platform.name)
    yield f"liara.json, all keys (pages are below {_DOCS_BASE}):"
    for key in keys:
        if not key.deprecated:
            yield _key_line(key)
    old = [f"{_name(key)}: {key.description.split('. ')[0]}" for key in keys if key.deprecated]
    if old:
        yield f"Read by the CLI but not documented, avoid: {'; '.join(old)}."


def _key_line(key: KeyReference) -> str:
    parts = [f"- {_name(key)} ({key.type}; default {key.default}): {key.description}"]
    # The type has said it already when nothing narrows the values down.
    if any(mark in key.allowed for mark in (":", "from", "least", "such")):
        parts.append(f"Allowed: {key.allowed}")
    if key.example not in ("{}", "[]", ""):
        parts.append(f"Example: {key.example}")
    parts.append(f"[{key.page.removeprefix(_DOCS_BASE)}]")
    return " ".join(parts)


def _name(key: KeyReference) -> str:
    name = key.json_path.removeprefix("$.")
    return name.removeprefix('$["').removesuffix('"]') if name.startswith('$["') else name


def _role_blocks(corpus: Corpus, platform: Platform, room: int) -> list[str]:
    """Return an excerpt of the first page of each role, and the other pages as a list."""
    by_role = {role: known_pages(corpus, platform.pages.get(role, ())) for role in _ROLES}
    shown = {page.key for pages in by_role.values() for page in pages}
    own = [
        page_of(corpus.index, key)
        for key in corpus.index.pages
        if key.startswith(platform.docs_prefix) and key not in shown
    ]
    present = {role: pages for role, pages in by_role.items() if pages}
    if own and "deploy" not in present:
        present["deploy"] = own[:1]
        own = own[1:]
    lists = {role: page_list(pages[1 : _MAX_LISTED + 1]) for role, pages in present.items()}
    more = f"More pages of {platform.title}:\n{page_list(own[:_MAX_LISTED])}" if own else ""
    spent = sum(len(text) + 60 for text in lists.values()) + len(more) + 2
    room = max(room - spent, 0)
    others = max(len(present) - ("deploy" in present), 1)
    shares = dict.fromkeys(present, int(room * (1 - _DEPLOY_SHARE)) // others)
    shares |= {"deploy": int(room * (_DEPLOY_SHARE if len(present) > 1 else 1))}
    blocks = []
    for role, pages in present.items():
        text = excerpt(corpus, pages[0], shares[role])
        rest = f"\nMore on this:\n{lists[role]}" if lists[role] else ""
        blocks.append(f"{_ROLES[role]}\n{text}{rest}")
    return [*blocks, more] if more else blocks


def _need_block(item: NeedAnswer, max_chars: int) -> str:
    title = f"Need: {neutralise_line(item.need, 80)}"
    result = item.result
    if result is None or not result.matched or not result.hits:
        return f"{title}\nNothing in this documentation matches it well."
    blocks = [title]
    room = max_chars - len(title) - 4
    for hit in result.hits:
        left = min(room - len(hit_header(hit)) - 4, 600)
        if left < MIN_EXCERPT_CHARS and len(blocks) > 1:
            break
        blocks.append(hit_block(hit, result.terms, max(left, MIN_EXCERPT_CHARS)))
        room -= len(blocks[-1]) + 1
    return "\n".join(blocks)
