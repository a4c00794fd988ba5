import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.data_files import data_path
from app.errors import ConfigError
from app.library.config import DocsConfig, find_config, load_config, parse_config
from app.models import Layer

FOLDER = Path("/srv/config")

# As users of the predecessor have it: a git source with layers, a local one, the defaults.
PREDECESSOR: dict[str, Any] = {
    "docs": {
        "product": {
            "source": "https://git.example.com/team/handbook.git",
            "desc": "Guides and reference of the product",
            "ref": "stable",
            "include": ["**/*.md"],
            "exclude": ["attic/**"],
            "layers": {
                "Guides": {"desc": "How-to", "include": ["guides/**"]},
                "api": {"include": ["api/**"]},
            },
            "top_k": 5,
        },
        "notes": {"source": "/home/me/notes"},
    },
    "default": {
        "docs": "product",
        "embedding_model": "sentence-transformers/all-MiniLM-L6-v2",
        "top_k": 8,
        "chunk_max_chars": 1200,
        "max_context_chars": 6000,
    },
}


def parse(data: object, **built_in: Any) -> DocsConfig:
    return parse_config(data, folder=FOLDER, **built_in)


def with_set(**keys: Any) -> dict[str, Any]:
    """A config whose default set `good` is fine, and a second set `other` with these keys."""
    return {
        "docs": {"good": {"source": "/srv/good"}, "other": {"source": "/srv/other", **keys}},
        "default": {"docs": "good"},
    }


def other(**keys: Any) -> Any:
    config = parse(with_set(**keys))
    assert config.problems == ()
    return config.sets[1]


def test_a_predecessor_config_works_unchanged() -> None:
    config = parse(PREDECESSOR)
    assert config.problems == ()
    assert config.default_docs == "product"
    product, notes = config.sets
    assert product.spec.source == "https://git.example.com/team/handbook.git"
    assert product.spec.ref == "stable"
    assert product.spec.include == ("**/*.md",)
    assert product.spec.exclude == ("attic/**",)
    assert product.spec.layers == (
        Layer("guides", "How-to", ("guides/**",)),
        Layer("api", "", ("api/**",)),
    )
    assert notes.spec.source == "/home/me/notes"
    assert notes.spec.ref == "main"
    assert notes.spec.include == ("**/*.md",)


def test_a_set_takes_its_own_value_then_the_default_then_the_built_in_one() -> None:
    product, notes = parse(PREDECESSOR).sets
    assert (product.top_k, notes.top_k) == (5, 8)
    assert (product.spec.chunk_max_chars, notes.spec.chunk_max_chars) == (1200, 1200)
    assert (product.max_context_chars, notes.max_context_chars) == (6000, 6000)
    assert notes.embedding_model == "sentence-transformers/all-MiniLM-L6-v2"
    bare = parse({"docs": {"a": {"source": "/a"}}, "default": {"docs": "a"}}).sets[0]
    assert (bare.top_k, bare.spec.chunk_max_chars, bare.max_context_chars) == (8, 1500, 8000)
    assert bare.embedding_model is None


def test_the_older_form_with_defaults_at_the_top_level_works_too() -> None:
    config = parse(
        {
            "docs": {"default": {"source": "/srv/docs"}},
            "default_docs": "default",
            "embedding_model": "some/model",
            "top_k": 3,
            "chunk_max_chars": 900,
        }
    )
    assert config.default_docs == "default"
    assert (config.sets[0].top_k, config.sets[0].spec.chunk_max_chars) == (3, 900)
    assert config.sets[0].embedding_model == "some/model"


def test_the_new_keys_are_read() -> None:
    options = other(
        base_url="https://docs.example.com/",
        refresh="15m",
        webhook_secret_env="TEAM_HOOK_SECRET",
        title_from="filename",
        embedding_model="m",
        max_context_chars=500,
        questions="asked.jsonl",
    )
    assert options.spec.questions == "/srv/config/asked.jsonl"
    assert options.spec.base_url == "https://docs.example.com/"
    assert options.refresh is not None
    assert options.refresh.every_seconds == 900
    assert options.webhook_secret_env == "TEAM_HOOK_SECRET"
    assert options.spec.title_from == "filename"
    assert (options.embedding_model, options.max_context_chars) == ("m", 500)


def test_null_means_the_key_is_not_given() -> None:
    assert other(desc=None, top_k=None, layers=None, embedding_model=None).top_k == 8


def test_a_relative_source_counts_from_the_config_and_home_is_expanded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert other(source="handbook").spec.source == "/srv/config/handbook"
    assert other(source="~/notes").spec.source == "/home/someone/notes"


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"sources": "x"}, "docs.other.sources"),
        ({"top_k": 0}, "docs.other.top_k"),
        ({"top_k": 51}, "docs.other.top_k"),
        ({"top_k": "8"}, "docs.other.top_k"),
        ({"top_k": True}, "docs.other.top_k"),
        ({"chunk_max_chars": 99}, "docs.other.chunk_max_chars"),
        ({"max_context_chars": 499}, "docs.other.max_context_chars"),
        ({"source": "  "}, "docs.other.source"),
        ({"source": 7}, "docs.other.source"),
        ({"ref": ""}, "docs.other.ref"),
        ({"ref": "--upload-pack=x"}, "docs.other.ref"),
        ({"include": "*.md"}, "docs.other.include"),
        ({"include": []}, "docs.other.include"),
        ({"include": ["**/*.md", "../x"]}, "docs.other.include.1"),
        ({"exclude": ["/etc/**"]}, "docs.other.exclude.0"),
        ({"layers": {"all": {"include": ["a/**"]}}}, "docs.other.layers.all"),
        ({"layers": {"a": {"include": ["x"]}, "A ": {"include": ["y"]}}}, "docs.other.layers.A"),
        ({"layers": {"a": {}}}, "docs.other.layers.a.include"),
        ({"layers": {"a": {"include": ["../x"]}}}, "docs.other.layers.a.include.0"),
        ({"layers": {"a": {"include": ["x"], "globs": []}}}, "docs.other.layers.a.globs"),
        ({"base_url": "ftp://x"}, "docs.other.base_url"),
        ({"base_url": "https://"}, "docs.other.base_url"),
        ({"refresh": "soon"}, "docs.other.refresh"),
        ({"refresh": "5s"}, "docs.other.refresh"),
        ({"webhook_secret_env": "no name"}, "docs.other.webhook_secret_env"),
        ({"title_from": "guess"}, "docs.other.title_from"),
    ],
)
def test_a_bad_set_is_left_out_with_the_key_and_the_others_are_served(
    keys: dict[str, Any], key: str
) -> None:
    config = parse(with_set(**keys))
    assert [options.spec.id for options in config.sets] == ["good"]
    assert len(config.problems) == 1
    assert config.problems[0].startswith(key)


def test_a_bad_default_set_is_an_error() -> None:
    data = {"docs": {"good": {"source": "/x", "top_k": 0}}, "default": {"docs": "good"}}
    with pytest.raises(ConfigError, match=r"^docs\.good\.top_k"):
        parse(data)


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ([], "config"),
        ({}, "docs"),
        ({"docs": {}, "default": {"docs": "a"}}, "docs"),
        ({"docs": {"a": {"source": "/a"}}}, "default.docs"),
        ({"docs": {"a": {"source": "/a"}}, "default": {}}, "default.docs"),
        ({"docs": {"a": {"source": "/a"}}, "default": {"docs": "b"}}, "default.docs"),
        ({"docs": {"a": {"source": "/a"}}, "default": {"docs": "a", "k": 1}}, "default.k"),
        (
            {"docs": {"a": {"source": "/a"}}, "default": {"docs": "a", "max_context_chars": 9}},
            "default.max_context_chars",
        ),
        ({"docs": {"a": {"source": "/a"}}, "default": {"docs": "a"}, "dosc": 1}, "dosc"),
    ],
)
def test_an_error_outside_of_the_sets_names_its_key(data: object, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(data)
    assert str(caught.value).startswith(f"{key}:")


def test_an_unknown_key_is_answered_with_the_nearest_known_one() -> None:
    assert "'exclude'" in parse(with_set(excludes=[])).problems[0]


def test_a_message_never_shows_the_value() -> None:
    secret = "https://user:tok-12345@git.example.com/x.git"
    config = parse(with_set(source=[secret], ref=[secret], desc=[secret]))
    assert config.problems
    assert "tok-12345" not in "".join(config.problems)


@pytest.mark.parametrize(
    "bad_id", ["", " ", "a/b", "..", ".x", "a b", "x" * 65, "con", "nul.md", "é"]
)
def test_an_id_that_is_no_folder_name_is_refused(bad_id: str) -> None:
    data = with_set()
    data["docs"][bad_id] = {"source": "/x"}
    config = parse(data)
    assert [options.spec.id for options in config.sets] == ["good", "other"]
    assert config.problems[0].startswith(f"docs.{bad_id}:")


def test_ids_that_collide_on_disk_are_refused_both() -> None:
    data = with_set()
    data["docs"] |= {"Team": {"source": "/x"}, "team": {"source": "/y"}}
    config = parse(data)
    assert [options.spec.id for options in config.sets] == ["good", "other"]
    assert "collides" in config.problems[0]


def test_a_built_in_set_may_be_the_default_but_its_id_is_taken() -> None:
    data = with_set()
    data["docs"]["liara"] = {"source": "/x"}
    data["default"]["docs"] = "good"
    assert "built-in" in parse(data, built_in_ids=["liara"]).problems[0]
    data = with_set() | {"default": {"docs": "liara"}}
    assert parse(data, built_in_ids=["liara"]).default_docs == "liara"


def test_a_file_is_read_with_or_without_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_text(json.dumps(PREDECESSOR), encoding=encoding)
        assert load_config(path).default_docs == "product"


def test_a_config_too_large_to_be_meant_is_refused(tmp_path: Path) -> None:
    many = {"docs": {f"s{number}": {"source": "/x"} for number in range(50_000)}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"default": {"docs": "s0"}} | many), encoding="utf-8")
    with pytest.raises(ConfigError, match="at most 1000"):
        load_config(path)


@pytest.mark.parametrize("depth", range(100, 1100, 50))
def test_a_config_of_any_depth_is_refused_with_a_reason(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"a":' * depth + "1" + "}" * depth, encoding="utf-8")
    with pytest.raises(ConfigError):
        load_config(path)


def test_a_pipe_in_the_place_of_the_config_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ConfigError, match="not a file"):
        load_config(tmp_path / "config.json")


@pytest.mark.parametrize(
    "text", ["", "{", "nonsense", "[" * 100_000, '{"docs": {}, "docs": {}}', "\udcff"]
)
def test_a_file_that_is_not_json_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_config(path)


def test_the_own_config_comes_before_the_predecessors(tmp_path: Path) -> None:
    theirs = tmp_path / ".config" / "mcp-docs-ask" / "config.json"
    ours = tmp_path / ".config" / "liara-docs-mcp" / "config.json"
    assert find_config(None, tmp_path) is None
    assert find_config(None, None) is None
    for path in (theirs, ours):
        path.parent.mkdir(parents=True)
        path.write_text("{}", encoding="utf-8")
        assert find_config(None, tmp_path) == path
    named = tmp_path / "named.json"
    with pytest.raises(ConfigError):
        find_config(named, tmp_path)
    named.write_text("{}", encoding="utf-8")
    assert find_config(named, tmp_path) == named


def documentation() -> str:
    root = Path(__file__).parents[2]
    return (root / "docs" / "ask-docs.md").read_text(encoding="utf-8")


def test_the_schema_for_editors_describes_every_key_and_so_does_the_documentation() -> None:
    schema = json.loads(data_path("config.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    described = set(
        re.findall(r"^\| `((?:docs\.<id>|default)\.\w+)`", documentation(), re.MULTILINE)
    )
    keys = {f"docs.<id>.{key}" for key in schema["$defs"]["set"]["properties"]}
    keys |= {f"default.{key}" for key in schema["properties"]["default"]["properties"]}
    assert described == keys


def test_the_documented_example_is_a_config(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", documentation(), re.DOTALL)
    path = tmp_path / "config.json"
    path.write_text(example, encoding="utf-8")
    config = load_config(path)
    assert config.problems == ()
    assert [options.spec.id for options in config.sets] == ["product", "notes"]


def test_the_tests_that_the_documentation_names_exist() -> None:
    tests = Path(__file__).parents[1].rglob("test_*.py")
    defined = set(
        re.findall(r"def (test_\w+)", "".join(f.read_text(encoding="utf-8") for f in tests))
    )
    named = set(re.findall(r"`(test_\w+)`", documentation()))
    assert named
    assert named <= defined


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["docs", "default", "source", "layers", "include", "a", "top_k"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON)
def test_whatever_the_json_says_it_is_served_or_refused_with_a_reason(data: object) -> None:
    try:
        config = parse(data)
    except ConfigError:
        return
    assert config.default_docs in {options.spec.id for options in config.sets}
