"""Arguments as models send them: other names, null for "not given", a bare string for a list."""

import json
import re
from collections.abc import Mapping
from typing import Any

_QUERY = ("question", "q", "search", "search_query", "text", "keywords", "prompt", "input")
_COUNT = ("top_k", "topk", "limit", "n", "num_results", "max_results", "count")
_URL = ("link", "page", "page_url", "uri", "path", "href", "address", "source", "id")

# For each tool: the argument, then the names that models use in its place, likeliest first.
_ALIASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "search_docs": {"query": _QUERY, "k": _COUNT},
    "read_page": {
        "url": _URL,
        "section": ("heading", "anchor", "fragment", "section_name"),
        "offset": ("start", "from", "position", "cursor"),
    },
    "platform_docs": {
        "platform": ("name", "framework", "stack", "platform_name", "language", "runtime"),
        "needs": ("need", "topics", "topic", "queries", "questions", "requirements", "features"),
    },
    "diagnose_log": {
        "log": ("logs", "text", "output", "error", "message", "content", "log_text", "build_log"),
    },
    "validate_liara_json": {
        "content": ("json", "liara_json", "config", "text", "file", "file_content", "manifest"),
        "platform": ("framework", "stack", "platform_name"),
    },
    "ask_docs": {
        "question": ("query", "q", "search", "search_query", "text", "prompt", "input"),
        "docs": ("docs_id", "doc_set", "set", "document_set", "collection"),
        "top_k": ("k", "limit", "n", "topk", "num_results", "max_results", "count"),
        "layer": ("layers",),
        "max_context_chars": ("max_chars", "max_length", "budget"),
    },
    "reindex": {"docs": ("docs_id", "doc_set", "set", "document_set", "collection")},
}
_LISTS = frozenset({("platform_docs", "needs")})
_TEXTS = frozenset({("validate_liara_json", "content"), ("diagnose_log", "log")})
_SEPARATORS = re.compile(r"[\n,;،؛]+")


def accept_arguments(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under the tool's own names; a name given as such always wins.

    Null counts as not given. A list argument takes a string with separators, a text argument an
    object or a list of lines.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    aliases = _ALIASES.get(tool, {})
    for wanted, others in aliases.items():
        if wanted in given:
            continue
        found = next((name for name in others if name in given and name not in aliases), None)
        if found is not None:
            given[wanted] = given.pop(found)
    return {name: _shaped(tool, name, value) for name, value in given.items()}


def _shaped(tool: str, name: str, value: Any) -> Any:
    if (tool, name) in _LISTS and isinstance(value, str) and not value.lstrip().startswith("["):
        return [part.strip() for part in _SEPARATORS.split(value) if part.strip()]
    if (tool, name) in _TEXTS and isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, indent=2)
    if (tool, name) in _TEXTS and isinstance(value, list):
        lines = all(isinstance(item, str) for item in value)
        return "\n".join(value) if lines else json.dumps(value, ensure_ascii=False, indent=2)
    return value
