import pytest

from app.errors import InvalidArgumentError, UnknownPlatformError
from app.liara.manifest import MAX_CONTENT_CHARS, MAX_FINDINGS, validate_liara_json
from app.liara.manifest_finding import MAX_ECHO_CHARS
from tests.liara.manifest_cases import BROKEN, CASES, SOUND, SYNTAX, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_file_is_judged_right(case: Case):
    report = validate_liara_json(case.content, case.platform)
    found = [(f.severity, f.json_path) for f in report.findings if f.severity != "info"]
    assert sorted(found) == sorted(case.faults), report.findings
    assert report.ok == all(severity != "error" for severity, _path in case.faults)
    infos = [f.json_path for f in report.findings if f.severity == "info"]
    for path in case.infos:
        infos.remove(path)


@pytest.mark.parametrize("case", [*SYNTAX, *BROKEN], ids=lambda case: case.name)
def test_each_finding_names_a_page_and_quotes_little(case: Case):
    for item in validate_liara_json(case.content, case.platform).findings:
        assert item.page is not None
        assert item.page.startswith("https://docs.liara.ir/")
        assert len(item.json_path) < 200


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_a_sound_file_is_told_what_it_will_do(case: Case):
    report = validate_liara_json(case.content)
    assert report.what_happens
    assert not report.omitted


@pytest.mark.parametrize(
    ("content", "line", "column", "word"),
    [
        ('{\n  "port": 3000,\n}', 2, 15, "comma"),
        ('{\n  // c\n  "port": 3000}', 2, 3, "comment"),
        ("{'port': 1}", 1, 2, "uotes"),
        ('{"a": 1\n "b": 2}', 2, 2, "comma"),
        ("{\n /* x */ 'a': 1 \"b\": 2}", 2, 17, "comma"),
        ('{"port": 3000', 1, 14, "ends too early"),
        ('\ufeff{"port": 3000,}', 1, 14, "comma"),
    ],
)
def test_a_syntax_fault_is_named_with_its_place(content: str, line: int, column: int, word: str):
    findings = validate_liara_json(content).findings
    assert any(
        (item.line, item.column) == (line, column) and word in item.problem for item in findings
    ), findings


def test_all_faults_of_the_text_are_named_and_the_rest_is_still_checked():
    report = validate_liara_json("{'prot': 3000, // c\n}")
    problems = " ".join(item.problem for item in report.findings)
    assert "Quotes" in problems
    assert "comment" in problems
    assert "comma" in problems
    assert "$.prot" in {item.json_path for item in report.findings}
    assert "stops at the syntax error" in report.what_happens[0]


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ('{"prot": 1}', '"port"'),
        ('{"env": {}}', '"envs"'),
        ('{"teamId": "a"}', '"team-id"'),
        ('{"nodejs": {}}', '"node"'),
        ('{"platform": "django", "version": "3.9"}', "$.django.pythonVersion"),
        ('{"mountTo": "a"}', "$.disks[].mountTo"),
        ('{"disks": [{"name": "a", "path": "b"}]}', '"mountTo"'),
        ('{"platform": "nodejs"}', '"node"'),
        ('{"platform": "wordpress"}', "one-click"),
    ],
)
def test_the_known_name_is_offered_for_a_wrong_one(content: str, hint: str):
    findings = validate_liara_json(content).findings
    assert any(hint in item.problem for item in findings), findings


def test_a_correct_file_is_told_what_the_deployment_does():
    lines = validate_liara_json(
        '{"app": "Shop", "platform": "node", "port": 3000, "node": {"version": "22"},'
        ' "disks": [{"name": "media", "mountTo": "uploads"}], "envs": {"A": "b"},'
        ' "healthCheck": {"command": "CMD true"}}'
    ).what_happens
    text = "\n".join(lines)
    for part in ('"shop"', "node", "3000", '"22"', '"media" at "uploads"', "Replaces", "health"):
        assert part in text


def test_the_platform_asked_for_counts_where_the_file_names_none():
    report = validate_liara_json('{"cron": ["0 1 * * * ls"]}', "Node.js")
    assert report.platform == "node"
    assert [item.json_path for item in report.findings] == ["$.cron"]


def test_a_wrong_argument_is_refused():
    with pytest.raises(UnknownPlatformError):
        validate_liara_json("{}", "cobol-on-cogs")
    with pytest.raises(InvalidArgumentError, match=str(MAX_CONTENT_CHARS)):
        validate_liara_json("{" + " " * MAX_CONTENT_CHARS + "}")
    assert validate_liara_json("{" + " " * (MAX_CONTENT_CHARS - 2) + "}").ok


def test_a_secret_is_never_repeated():
    secret = "S3same-Open-Now-77"
    content = (
        f'{{"envs": {{"DB_PASSWORD": "{secret}", "PIN_TOKEN": {{"a": "{secret}"}}}},'
        f' "build": {{"args": ["NPM_TOKEN={secret}"]}}, "api-token": "{secret}",'
        f' "image": "https://bob:{secret}@registry.example.com/a b"}}'
    )
    report = validate_liara_json(content)
    assert len(report.findings) >= 5
    assert secret not in repr(report)


def test_a_long_value_is_cut_and_control_characters_are_not_repeated():
    report = validate_liara_json('{"app": "' + "a b" * 300 + '\u202e\\u0007"}')
    (problem,) = (item.problem for item in report.findings if item.severity == "error")
    assert len(problem) < MAX_ECHO_CHARS + 60
    report = validate_liara_json('{"app": "x\u202ey\\u001b"}')
    assert "\u202e" not in repr(report)
    assert "\x1b" not in report.findings[0].problem


def test_many_faults_are_counted_but_not_all_listed():
    entries = ", ".join(f'"zq{n}": {n}' for n in range(500))
    report = validate_liara_json("{" + entries + ', "port": 0}')
    assert len(report.findings) == MAX_FINDINGS
    assert report.omitted
    assert not report.ok
    assert report.findings[0].json_path == "$.port"


@pytest.mark.parametrize(
    "content",
    [
        "[" * 10_000,
        "{" * 10_000,
        '{"a":' * 3_000,
        "[" * 9_000 + "]" * 9_000,
        '{"node": ' + "[" * 5_000 + "]" * 5_000 + "}",
        '{"port": ' + "9" * 15_000 + "}",
        '{"port": -' + "9" * 15_000 + ".5e99999}",
        '{"cron": ["' + "1" * 15_000 + ' * * * * ls"]}',
        '{"cron": ["' + "1," * 9_000 + '1 * * * * ls"]}',
        '{"app": "' + "a-" * 9_000 + '"}',
        '{"image": "' + "a/" * 9_000 + '"}',
        '{"node": {"timezone": "' + "Asia/" * 3_000 + '"}}',
        '{"envs": {"A": "' + "postgres://" * 1_500 + '"}, "port": 0}',
        '{"healthCheck": {"command": "' + "localhost:1 " * 1_500 + '"}, "port": 0}',
        "/*" * 10_000,
        "'" * 19_999,
        "," * 20_000,
        '"\\' * 9_000,
        "{a:" * 6_000,
        '{"a":1,' * 2_000,
        '{"\ud800": "\udfff"}',
        '{"\ud800": ' + "\udfff" * 100,
        "\x00\x01\x02",
        "null",
        "3",
        '"liara"',
    ],
    ids=lambda content: f"{content[:12]!a}",
)
def test_hostile_content_is_a_finding_and_never_a_crash(content: str):
    report = validate_liara_json(content)
    assert not report.ok
    assert all(len(item.problem) < 600 for item in report.findings)
    "".join(item.problem + item.json_path for item in report.findings).encode("utf-8")
