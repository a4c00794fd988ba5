import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.liara.manifest import ManifestReport, validate_liara_json
from app.liara.manifest_parse import parse_manifest
from app.liara.manifest_schema import manifest_schema
from app.liara.platforms import PLATFORMS

KEYS = [*manifest_schema()["properties"], "prot", "envs", "healthcheck", "x"]
ANY_TEXT = st.text(alphabet=st.characters(), max_size=40)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | ANY_TEXT, inner, max_size=4)
    ),
    max_leaves=12,
)
# Text made of what liara.json is made of meets more of the reader than random characters do.
PIECES = st.sampled_from(
    [*'{}[],:"#،“”', "'", "\\", "//", "/*", "*/", "\n", " ", "\ufeff", "\ud800"]
) | st.sampled_from(["app", '"port"', "3000", "true", "True", "NaN", "-", "1e9", "null"])


def assert_sound(report: ManifestReport) -> None:
    assert report.ok == all(item.severity != "error" for item in report.findings)
    for item in report.findings:
        assert item.problem
        assert item.json_path.startswith("$")
        (item.problem + item.json_path + (item.allowed or "")).encode("utf-8")
        assert (item.line is None) == (item.column is None)
        assert item.line is None or (item.line >= 1 and item.column is not None)


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_gets_a_report(content: str):
    assert_sound(validate_liara_json(content))


@given(st.lists(PIECES, max_size=40).map("".join))
@settings(max_examples=300)
def test_any_mixture_of_json_pieces_gets_a_report(content: str):
    assert_sound(validate_liara_json(content))


@given(ANY_JSON, st.none() | st.sampled_from(list(PLATFORMS)))
@settings(max_examples=200)
def test_any_json_gets_a_report(value: object, platform: str | None):
    assert_sound(validate_liara_json(json.dumps(value)[:20_000], platform))


def _strict(content: str) -> bool:
    """Whether JavaScript's JSON.parse would read the text."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(content, parse_constant=refuse)
    except ValueError:
        return False
    return True


@given(st.lists(PIECES, max_size=12).map("".join))
@settings(max_examples=400)
def test_a_fault_of_the_syntax_is_reported_exactly_when_the_text_is_not_json(content: str):
    faults = [f for f in parse_manifest(content).findings if f.severity == "error" and f.line]
    assert bool(faults) != _strict(content.removeprefix("\ufeff"))


def _version(platform: str) -> st.SearchStrategy[dict[str, str]]:
    node = manifest_schema()["properties"].get(platform, {}).get("properties", {})
    known = {name: sub["x-values"] for name, sub in node.items() if "x-values" in sub}
    return st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(values) for name, values in known.items()}
    )


def _flags(platform: str) -> st.SearchStrategy[dict[str, bool]]:
    node = manifest_schema()["properties"].get(platform, {}).get("properties", {})
    names = [n for n, sub in node.items() if sub["type"] == "boolean" and "deprecated" not in sub]
    return st.fixed_dictionaries({}, optional={name: st.booleans() for name in names})


@st.composite
def sound_manifests(draw: st.DrawFn) -> dict[str, Any]:
    platform = draw(st.sampled_from(list(PLATFORMS)))
    slug = st.from_regex(r"[a-z][a-z0-9]{0,8}(?:-[a-z0-9]{1,6})?", fullmatch=True)
    names = draw(st.lists(slug, max_size=3, unique=True))
    data: dict[str, Any] = {"platform": platform}
    if draw(st.booleans()):
        data["app"] = draw(slug.filter(lambda name: not name.startswith("your-")))
    if draw(st.booleans()):
        data["port"] = draw(st.integers(1, 65535))
    if PLATFORMS[platform].config_key:
        data[platform] = draw(_version(platform)) | draw(_flags(platform))
    data["disks"] = [{"name": name, "mountTo": f"/srv/{name}"} for name in names]
    data["cron"] = draw(
        st.lists(
            st.builds(
                "{} {} {} {} {} cd $ROOT && ls".format,
                st.sampled_from(["*", "*/5", "0", "59", "1,2", "3-9"]),
                st.sampled_from(["*", "*/2", "0", "23"]),
                st.sampled_from(["*", "1", "28"]),
                st.sampled_from(["*", "1-12", "feb"]),
                st.sampled_from(["*", "0", "7", "mon-fri"]),
            ),
            max_size=2,
        )
    )
    data["envs"] = draw(
        st.dictionaries(
            st.from_regex(r"[A-Z][A-Z0-9_]{0,12}", fullmatch=True),
            st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
            max_size=3,
        )
    )
    if draw(st.booleans()):
        data["healthCheck"] = {"command": "CMD true", "interval": draw(st.integers(0, 10**6))}
    if draw(st.booleans()):
        data["build"] = {"location": draw(st.sampled_from(["iran", "germany"])), "cache": True}
    return data


@given(sound_manifests())
def test_a_sound_file_has_no_error(data: dict[str, Any]):
    report = validate_liara_json(json.dumps(data, ensure_ascii=False))
    assert report.ok, report.findings
    assert report.platform == data["platform"]
    assert report.what_happens


@given(sound_manifests(), st.data())
def test_a_sound_file_with_one_key_misspelt_names_the_key(
    data: dict[str, Any], draw: st.DataObject
):
    key = draw.draw(st.sampled_from([name for name in data if len(name) > 3]))
    wrong = key[:-2] + key[-1] + key[-2] + "_"
    data[wrong] = data.pop(key)
    findings = validate_liara_json(json.dumps(data)).findings
    assert f"$.{wrong}" in {item.json_path for item in findings}
