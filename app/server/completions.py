"""Completions: the values that clients offer while a person fills in an argument."""

from collections.abc import Iterable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from app.liara.corpus import LIARA_SET_ID
from app.liara.platforms import PLATFORMS
from app.library.library import DocumentLibrary
from app.server.docs_tools import DocsTools

MAX_VALUES = 100
"""The protocol's own limit."""


def register(server: MCPServer[Any], library: DocumentLibrary) -> None:
    """Answer completions for platform (prompts), docs, layer and path (resource templates)."""
    docs = DocsTools(library, "http")
    has_liara = LIARA_SET_ID in library.ids

    # The SDK's decorator carries no types.
    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        if isinstance(ref, PromptReference):
            known = argument.name == "platform" and has_liara
            return _completion(complete_platform(argument.value) if known else [])
        chosen = (context.arguments or {}) if context else {}
        return _completion(docs.complete(argument.name, argument.value, chosen.get("docs")))


def complete_platform(begun: str) -> list[str]:
    """Return the platforms whose name, or one of whose aliases, begins with what was typed."""
    folded = begun.strip().casefold()
    return [
        platform.name
        for platform in PLATFORMS.values()
        if _begins((platform.name, platform.title, *platform.aliases), folded)
    ]


def _begins(names: Iterable[str], folded: str) -> bool:
    return any(name.casefold().startswith(folded) for name in names)


def _completion(values: list[str]) -> Completion:
    return Completion(
        values=values[:MAX_VALUES], total=len(values), has_more=len(values) > MAX_VALUES
    )
