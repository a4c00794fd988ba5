import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.liara.log_cleaning import MAX_LINES, clean_lines, strip_terminal_codes


@pytest.mark.parametrize(
    "prefix",
    [
        "2024-05-01T10:00:00.123456789Z ",
        "2024-05-01 10:00:00,123 ",
        "[2024-05-01 10:00:00] ",
        "[2024-05-01 10:00:00 +0330] [7] ",
        "2024/05/01 10:00:00 ",
        "۱۴۰۳/۰۵/۱۲ ۱۲:۳۰:۴۵ ",
        "01/02/2024, 3:04:05 PM ",
        "Jan  2 15:04:05 host docker[123]: ",
        "[Wed Oct 11 14:32:52.123456 2023] ",
        "Mon, 02 Jan 2006 15:04:05 GMT ",
        "1714557600.123 ",
        "12:30:45 ",
        "[12:30:45] ",
        "#12 3.456 ",
        "3.456 ",
        "web_1  | ",
        "web-1  | 2024-05-01T10:00:00Z ",
        "0|api  | ",
        "[pod/shop-7c/app] ",
        "@acme/web:build: ",
        "app[web.1]: ",
        "[Nest] 19  - 05/01/2024, 8:30:12 AM   ",
        " ›   ",
        "remote: ",
        "2024-05-01T10:00:00.1Z stderr F ",
        "\x1b[31m",
        "^[[1;31m",
        "[31m",
        "\x1b]0;building\x07",
        "\x1b]8;;https://example.com\x1b\\",
        "10%\r50%\r",
    ],
)
def test_what_stands_before_the_message_is_dropped(prefix: str) -> None:
    assert [line.strip() for line in clean_lines(prefix + "boom: it broke")] == ["boom: it broke"]


@pytest.mark.parametrize(
    "line",
    [
        '10.0.0.1 - - [01/Jan/2024:10:00:00 +0000] "GET / HTTP/1.1" 502 0',
        "main.go:12:5: undefined: x",
        "#0 /var/www/html/index.php(12): main()",
        "3 errors found",
        "5432 is the port",
        '  File "a.py", line 2',
        "تاریخ ۱۲ مرداد: خطا",
    ],
)
def test_what_belongs_to_the_message_stays(line: str) -> None:
    assert clean_lines(line) == [line]


def test_indentation_behind_a_prefix_is_kept() -> None:
    assert clean_lines('web-1  |   File "a.py", line 2') == ['  File "a.py", line 2']


def test_a_progress_display_leaves_its_last_state() -> None:
    assert strip_terminal_codes("10%\r50%\rdone: failed\r\nnext") == "done: failed\nnext"


def test_the_last_300_lines_are_kept() -> None:
    lines = clean_lines("\n".join(f"line {n}" for n in range(1000)))
    assert (len(lines), lines[0], lines[-1]) == (MAX_LINES, "line 700", "line 999")


def test_invisible_and_broken_characters_are_removed_but_not_the_persian_joiner() -> None:
    assert strip_terminal_codes("a\x00b\u202ec\ud800d می\u200cروم") == "abc\ufffdd می\u200cروم"


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(), max_size=400))
def test_cleaned_text_can_be_sent_and_shown(text: str) -> None:
    cleaned = strip_terminal_codes(text)
    cleaned.encode("utf-8")
    assert "\x1b" not in cleaned
    assert "\r" not in cleaned
