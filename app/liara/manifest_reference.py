"""The reference of liara.json: every key with its type, default and page, from the schema."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from app.liara.manifest_finding import json_path
from app.liara.manifest_schema import Schema, describe_allowed, manifest_schema
from app.liara.platforms import PLATFORMS, resolve_platform


@dataclass(frozen=True, slots=True)
class KeyReference:
    """One key of liara.json. `example` is JSON; `deprecated` marks what to write otherwise."""

    json_path: str
    type: str
    default: str
    allowed: str
    description: str
    example: str
    page: str
    deprecated: bool = False


def liara_json_reference(platform: str | None) -> tuple[KeyReference, ...]:
    """Return the common keys and those of one platform, or of all for None.

    Raises:
        UnknownPlatformError: No platform has that name.
    """
    wanted = None if platform is None else resolve_platform(platform).name
    keys: list[KeyReference] = []
    for name, node in manifest_schema()["properties"].items():
        if name not in PLATFORMS or wanted in (None, name):
            keys += _key_and_children(json_path((name,)), node)
    return tuple(keys)


def _key_and_children(path: str, node: Schema) -> Iterator[KeyReference]:
    yield _reference(path, node)
    items = node.get("items", {})
    for name, child in items.get("properties", {}).items():
        yield from _key_and_children(f"{path}[].{name}", child)
    for name, child in node.get("properties", {}).items():
        yield from _key_and_children(path + json_path((name,))[1:], child)


def _reference(path: str, node: Schema) -> KeyReference:
    types = node["type"]
    return KeyReference(
        json_path=path,
        type=types if isinstance(types, str) else " or ".join(types),
        default=_json(node["default"]) if "default" in node else node["x-default"],
        allowed=describe_allowed(node) or "",
        description=node["description"],
        example=_json(node["examples"][0]),
        page=node["x-page"],
        deprecated=bool(node.get("deprecated")),
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
