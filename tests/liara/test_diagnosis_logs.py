from collections import Counter

import pytest

from app.liara.diagnosis import Diagnosis, diagnose
from tests.liara.diagnosis_cases import LogCase, load_cases, load_logs_without_error

CASES = load_cases()
WITHOUT_ERROR = load_logs_without_error()
# The acceptance of the log tool: what share of the logs must be right.
MIN_SIGNATURES = 0.95
MIN_FIRST_PAGES = 0.85


@pytest.fixture(scope="module")
def results() -> list[tuple[LogCase, Diagnosis]]:
    return [(case, diagnose(case.text)) for case in CASES]


def test_at_least_40_classes_have_two_logs() -> None:
    counts = Counter(case.error_class for case in CASES if case.error_class)
    assert len(CASES) >= 80
    assert sum(count >= 2 for count in counts.values()) >= 40


def test_signature_and_class_are_right_for_95_percent_of_the_logs(
    results: list[tuple[LogCase, Diagnosis]],
) -> None:
    wrong = [
        (case.name, found.error_class, found.signature)
        for case, found in results
        if found.error_class != case.error_class or case.signature not in found.signature
    ]
    assert len(wrong) <= len(results) * (1 - MIN_SIGNATURES), wrong


def test_the_first_page_is_right_for_85_percent_of_the_logs(
    results: list[tuple[LogCase, Diagnosis]],
) -> None:
    wrong = [
        (case.name, found.pages[:1], case.page)
        for case, found in results
        if (found.pages[0] if found.pages else None) != case.page
    ]
    assert len(wrong) <= len(results) * (1 - MIN_FIRST_PAGES), wrong


def test_the_platform_is_right_for_95_percent_of_the_logs(
    results: list[tuple[LogCase, Diagnosis]],
) -> None:
    wrong = [
        (case.name, found.platform, case.platform)
        for case, found in results
        if found.platform != case.platform
    ]
    assert len(wrong) <= len(results) * (1 - MIN_SIGNATURES), wrong


def test_every_known_error_brings_its_explanation(
    results: list[tuple[LogCase, Diagnosis]],
) -> None:
    for _case, found in results:
        assert found.found_error
        assert found.query
        assert len(found.signature) <= 200
        assert found.known == bool(found.title and found.fix and found.fix_fa and found.pages)
        assert found.known == (found.error_class is not None)


@pytest.mark.parametrize("name", WITHOUT_ERROR)
def test_a_log_of_success_shows_no_error(name: str) -> None:
    found = diagnose(WITHOUT_ERROR[name])
    assert (found.found_error, found.known, found.signature, found.pages) == (False, False, "", ())


@pytest.mark.parametrize("case", CASES[::6], ids=lambda case: case.name)
def test_the_dress_of_the_log_does_not_change_the_diagnosis(case: LogCase) -> None:
    plain = diagnose(case.text)
    dressed = "\r\n".join(
        f"\x1b[2m2025-03-0{1 + n % 9}T10:00:{n % 60:02d}.123456789Z\x1b[0m \x1b[31m{line}\x1b[39m"
        for n, line in enumerate(case.text.rstrip().split("\n"))
    )
    found = diagnose(f"web-1  | {dressed}".replace("\r\n", "\r\nweb-1  | "))
    assert (found.error_class, found.signature, found.platform) == (
        plain.error_class,
        plain.signature,
        plain.platform,
    )


@pytest.mark.parametrize("case", CASES[::9], ids=lambda case: case.name)
def test_output_of_success_before_the_error_does_not_hide_it(case: LogCase) -> None:
    before = WITHOUT_ERROR["npm_warnings"] + WITHOUT_ERROR["jest"]
    assert diagnose(before + case.text).error_class == case.error_class
