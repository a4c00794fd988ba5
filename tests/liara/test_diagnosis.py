import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.liara.diagnosis import MAX_LOG_CHARS, MAX_SIGNATURE_CHARS, diagnose

PYTHON_CHAIN = """\
Traceback (most recent call last):
  File "/usr/src/app/main.py", line 4, in parse
    return int(text)
ValueError: invalid literal for int() with base 10: 'ten'

{link}

Traceback (most recent call last):
  File "/usr/src/app/main.py", line 9, in <module>
    raise OrderRejected(text) from error
shop.errors.OrderRejected: ten
"""


def test_the_first_real_error_wins_over_the_end_of_the_cascade() -> None:
    found = diagnose(
        "> web@1.0.0 build\n> vite build\n"
        'Could not resolve "./Header.vue" from "src/App.vue"\n'
        "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! web@1.0.0 build: `vite build`\n"
        "npm ERR! Exit status 1\nnpm ERR! Failed at the web@1.0.0 build script.\n"
        'ERROR: process "/bin/sh -c npm run build" did not complete successfully: exit code: 1\n'
        "Build failed.\n"
    )
    assert found.error_class == "bundler_module_not_found"
    assert found.signature == 'Could not resolve "./Header.vue" from "src/App.vue"'


@pytest.mark.parametrize(
    "link",
    [
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ],
)
def test_a_python_chain_is_named_by_its_first_exception(link: str) -> None:
    found = diagnose(PYTHON_CHAIN.format(link=link))
    assert found.signature == "ValueError: invalid literal for int() with base 10: 'ten'"
    assert not found.known


def test_a_known_consequence_says_more_than_an_unknown_cause() -> None:
    found = diagnose(
        "Traceback (most recent call last):\n"
        '  File "/usr/src/app/config.py", line 3, in <module>\n'
        "ValueError: no value\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/src/app/settings.py", line 9, in <module>\n'
        "django.core.exceptions.ImproperlyConfigured: Set the SECRET_KEY environment variable\n"
    )
    assert found.error_class == "missing_env"


def test_the_source_line_of_a_traceback_is_never_the_signature() -> None:
    found = diagnose(
        "Traceback (most recent call last):\n"
        '  File "/usr/src/app/x.py", line 3, in <module>\n'
        "    raise ModuleNotFoundError(\"No module named 'x'\")\n"
        "ModuleNotFoundError: No module named 'requests'\n"
    )
    assert found.signature == "ModuleNotFoundError: No module named 'requests'"


def test_the_inner_exception_of_dotnet_is_the_cause() -> None:
    found = diagnose(
        "Unhandled exception. System.TypeInitializationException: The type initializer threw\n"
        " ---> System.InvalidOperationException: outer\n"
        " ---> System.FormatException: The input string 'abc' was not in a correct format.\n"
        "   at System.Number.ThrowFormatException()\n"
        "   --- End of inner exception stack trace ---\n"
    )
    assert found.signature.startswith("System.FormatException: ")


def test_a_panic_after_a_refused_database_is_not_the_cause() -> None:
    found = diagnose(
        "2025/01/01 10:00:00 dial tcp 10.0.0.2:5432: connect: connection refused\n"
        "panic: runtime error: invalid memory address or nil pointer dereference\n"
        "[signal SIGSEGV: segmentation violation]\n\ngoroutine 1 [running]:\nmain.main()\n"
        "\t/app/main.go:21 +0x1d3\nexit status 2\n"
    )
    assert (found.error_class, found.database, found.platform) == ("db_refused", "postgresql", "go")


def test_only_an_exit_code_is_an_unknown_error() -> None:
    found = diagnose("Step 4/9 : RUN make assets\nmake: *** [assets] Error 2\nexit code: 2\n")
    assert (found.known, found.found_error) == (False, True)
    assert found.signature == "make: *** [assets] Error 2"


def test_localhost_is_the_cause_only_where_a_request_failed() -> None:
    start = "Platform: node\nServer running at http://localhost:3000\n"
    assert not diagnose(start).found_error
    found = diagnose(start + "GET / 502 Bad Gateway\n")
    assert found.error_class == "bound_to_localhost"


def test_a_warning_does_not_stand_before_an_error() -> None:
    found = diagnose(
        "npm warn EBADENGINE Unsupported engine { required: { node: '>=22' } }\n"
        "Error: Cannot find module 'express'\n"
    )
    assert found.error_class == "node_module_not_found"


def test_persian_text_around_the_error_is_no_hindrance() -> None:
    found = diagnose(
        "سلام، بعد از استقرار این خطا را می‌گیرم:\n\n"
        "۱۴۰۳/۰۵/۱۲ ۱۲:۳۰:۴۵ SQLSTATE[HY000] [1045] Access denied for user 'root'@'db'\n\n"
        "برنامه با لاراول (laravel) نوشته شده است.\n"
    )
    assert (found.error_class, found.database, found.platform) == ("db_auth", "mysql", "laravel")
    assert found.signature.startswith("SQLSTATE[HY000] [1045] Access denied")


def test_an_unknown_error_is_searched_by_its_own_words() -> None:
    found = diagnose("flask run\nError: the sprocket of /usr/src/app/x.py at 0xdeadbeef is bent\n")
    assert (found.known, found.found_error, found.error_class) == (False, True, None)
    assert found.query == "Error the sprocket of at is bent flask"
    assert found.pages == ()


def test_the_pages_of_the_platform_come_first() -> None:
    error = "ENOENT: no such file\nError: connect ECONNREFUSED 127.0.0.1:3306\n"
    assert diagnose(error).pages[0].endswith("/dbaas/mysql/quick-setup/")
    laravel = diagnose("php artisan migrate\n" + error)
    assert laravel.pages[0].endswith("/paas/laravel/how-tos/connect-to-db/mysql/")


def test_only_the_tail_of_a_long_log_counts() -> None:
    old = "Error: Cannot find module 'express'\n"
    filler = "request served\n" * 400
    assert diagnose(old + filler).found_error is False
    found = diagnose(filler + old)
    assert (found.error_class, found.truncated) == ("node_module_not_found", True)
    assert diagnose(old).truncated is False


def test_one_line_longer_than_the_limit_is_read_from_its_end() -> None:
    found = diagnose("x " * MAX_LOG_CHARS + "\nError: listen EADDRINUSE: address already in use\n")
    assert (found.error_class, found.truncated) == ("address_in_use", True)


def test_a_long_line_is_shown_from_where_the_error_stands() -> None:
    found = diagnose(
        "job=" + "a" * 300 + ' msg: exec: "uvicorn": executable file not found in $PATH'
    )
    assert found.error_class == "entrypoint_failed"
    assert "executable file not found" in found.signature


@pytest.mark.parametrize("secret", ["hunter2hunter2", "p@ss/w0rd!", "رمزمن۱۲۳"])
def test_no_secret_reaches_signature_or_query(secret: str) -> None:
    found = diagnose(f"Error: connect to postgres://root:{secret}@db:5432/app failed\n")
    assert secret not in f"{found.signature} {found.query}"


def test_a_secret_split_by_colour_codes_is_masked() -> None:
    found = diagnose("Error: login failed, PASS\x1b[31mWORD=hun\x1b[0mter2\x00zz\n")
    assert "hun" not in found.signature
    assert "ter2" not in found.signature


def test_a_secret_that_the_cut_goes_through_is_masked() -> None:
    token = "ghp_" + "a1B2" * 9
    for shift in range(0, 60, 7):
        log = "x" * 9000 + f" {token} " + "y" * (MAX_LOG_CHARS - shift) + "\nError: broken\n"
        found = diagnose(log)
        assert found.signature == "Error: broken"
        assert not any(token[i : i + 12] in f"{found}" for i in range(len(token) - 12))


@pytest.mark.parametrize(
    "log", ["", " \n\t\n", "\x00" * 50, "\ud800\udfff", "\x1b]0;title", "\r" * 99]
)
def test_an_empty_or_broken_log_has_no_error(log: str) -> None:
    found = diagnose(log)
    assert (found.found_error, found.signature) == (False, "")


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(), max_size=600))
def test_no_text_makes_it_raise(text: str) -> None:
    found = diagnose(text)
    assert len(found.signature) <= MAX_SIGNATURE_CHARS
    found.signature.encode("utf-8")
    assert "\n" not in found.signature
    assert found.found_error == bool(found.signature)


PIECES = st.sampled_from(
    [
        "Error: ",
        "npm ERR! ",
        "Traceback (most recent call last):\n",
        "\n",
        '  File "a.py", line 2',
        "ECONNREFUSED ",
        ":5432",
        " ---> ",
        "Caused by: ",
        "\x1b[31m",
        "\r",
        "502 ",
        "password=",
        "خطا ",
        "at x (a.js:1:2)\n",
        "#12 3.4 ",
        "2025-01-01T10:00:00Z ",
        "exit code: 1\n",
        "^",
        "(",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES, max_size=80))
def test_any_mixture_of_log_pieces_is_read(pieces: list[str]) -> None:
    found = diagnose("".join(pieces))
    assert found.known == bool(found.pages)
    assert len(found.signature) <= MAX_SIGNATURE_CHARS


def test_a_warning_of_the_running_app_is_an_error_but_one_of_the_build_is_not() -> None:
    app = "2025-01-01 10:00:00 WARNING Forbidden (CSRF cookie not set.): /api/orders/\n"
    assert diagnose(app).error_class == "django_csrf"
    build = "npm warn EBADENGINE Unsupported engine { required: { node: '>=22' } }\n"
    assert not diagnose(build).found_error
    assert diagnose(build + "npm error code 1\n").error_class == "node_version_unsupported"
