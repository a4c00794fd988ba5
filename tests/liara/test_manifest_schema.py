import json
import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from app.data_files import data_path
from app.liara.manifest_reference import liara_json_reference
from app.liara.platforms import PLATFORMS

PAGE = re.compile(r"https://docs\.liara\.ir/[a-z0-9/-]+/")
SCHEMA: dict[str, Any] = json.loads(
    data_path("liara", "liara.schema.json").read_text(encoding="utf-8")
)


def properties(node: dict[str, Any], path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from properties(child, f"{path}.{name}")
    if "items" in node:
        yield from properties(node["items"], f"{path}[]")


def test_the_schema_is_valid_by_the_meta_schema_of_2020_12():
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(SCHEMA)


def test_every_property_carries_its_facts():
    found = dict(properties(SCHEMA))
    assert len(found) > 70
    for path, node in found.items():
        assert node["description"].endswith("."), path
        assert node["type"], path
        assert ("default" in node) != ("x-default" in node), path
        assert node["examples"], path
        assert PAGE.fullmatch(node["x-page"]), path
        assert node["x-source"] in {"docs", "cli", "docs+cli"}, path


def test_every_example_and_default_is_valid_where_it_stands():
    for path, node in properties(SCHEMA):
        validator = Draft202012Validator({**node, "$defs": SCHEMA["$defs"]})
        for value in [*node["examples"], *([node["default"]] if "default" in node else [])]:
            assert validator.is_valid(value), (path, value)


def test_every_platform_but_static_has_its_object():
    objects = {name for name in SCHEMA["properties"] if name in PLATFORMS}
    assert objects == {p.config_key for p in PLATFORMS.values() if p.config_key}
    assert SCHEMA["properties"]["platform"]["enum"] == list(PLATFORMS)


def test_the_reference_lists_common_keys_and_those_of_one_platform():
    keys = {key.json_path: key for key in liara_json_reference("Next.js")}
    assert keys["$.disks[].mountTo"].page == "https://docs.liara.ir/paas/disks/route/"
    assert keys["$.next.nodeVersion"].default == '"22"'
    assert "24" in keys["$.next.nodeVersion"].allowed
    assert keys['$["team-id"]'].type == "string"
    assert "$.node.version" not in keys
    assert all(key.page and key.description and key.example for key in keys.values())


def test_the_reference_without_a_platform_lists_every_property():
    assert len(liara_json_reference(None)) == len(dict(properties(SCHEMA)))


def test_every_reference_of_a_platform_fits_an_answer():
    for name in PLATFORMS:
        text = json.dumps([repr(key) for key in liara_json_reference(name)], ensure_ascii=False)
        assert len(text) < 24_000, name
