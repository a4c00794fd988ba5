import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.liara.secrets import MASK, mask_secrets

LETTERS = string.ascii_letters + string.digits
VALUES = st.text(LETTERS + "-_.~+!$%^*", min_size=8, max_size=60).filter(
    lambda value: any(char.isdigit() for char in value) and value[0] not in "-.+"
)
QUOTED = st.text(LETTERS + " ;,&)(]{}<>|@:/=-_", min_size=8, max_size=60).filter(
    lambda value: value.strip() == value and any(char.isdigit() for char in value)
)
AROUND = st.sampled_from(
    ["", "خطا در ورود: ", "برنامه با ", "2025-01-01T10:00:00Z ", '{"msg": "', "\t"]
)
BARE_PLACES = st.sampled_from(
    [
        "DB_PASSWORD={}",
        "password={}",
        "password: {}",
        "Password={}",
        "MYSQL_PWD={}",
        "SECRET_KEY = {}",
        "api_key={}",
        "API-KEY: {}",
        "X-Api-Key: {}",
        "access_token={}",
        "?token={}",
        "&sig={}",
        "Server=db;Password={}",
        "AccountKey={}",
        "//registry.npmjs.org/:_authToken={}",
        "--password {}",
        "--api-token={}",
        "--api-token {}",
        "export JWT_SECRET={}",
        "APP_KEY={}",
        "DB_PASS={}",
        "pwd={}",
        "Authorization: Bearer {}",
        "Authorization: Basic {}",
        "authorization={}",
        "bearer {}",
        "Set-Cookie: sid={}",
        "Cookie: session={}",
        "postgres://root:{}@db:5432/app",
        "https://user:{}@github.com/a/b",
        "mongodb+srv://u:{}@cluster0.example.net",
        "redis://:{}@cache:6379",
        "amqp://guest:{}@mq",
        "mysql -u root -p{} shop",
        "redis-cli -a {} ping",
        "curl -u me:{} https://x.ir",
        "رمز عبور: {}",
        "رمز عبور={}",
        "توکن: {}",
        "پسورد: {}",
        "كلمه عبور: {}",
        "کلید: {}",
        "گذرواژه = {}",
    ]
)
QUOTED_PLACES = st.sampled_from(
    [
        '"password": "{}"',
        "'password' => '{}',",
        "PASSWORD='{}'",
        'SECRET_KEY = "{}"',
        "token: '{}'",
        '\\"password\\":\\"{}\\"',
        "`apiKey`: `{}`",
        "IDENTIFIED BY '{}'",
    ]
)


@settings(max_examples=200, deadline=None)
@given(
    before=AROUND, place=BARE_PLACES, value=VALUES, after=st.sampled_from(["", " است", " ok", "\n"])
)
def test_a_named_secret_never_survives(before: str, place: str, value: str, after: str) -> None:
    masked = mask_secrets(before + place.format(value) + after)
    assert value not in masked
    assert MASK in masked


@settings(max_examples=150, deadline=None)
@given(before=AROUND, place=QUOTED_PLACES, value=QUOTED)
def test_a_quoted_secret_never_survives(before: str, place: str, value: str) -> None:
    assert value not in mask_secrets(before + place.replace("{}", value))


def keyed(prefix: str, alphabet: str, length: int) -> st.SearchStrategy[str]:
    tail = st.text(alphabet, min_size=length, max_size=length)
    return tail.map(lambda text: prefix + text[:-1] + "7")


SHAPES = st.one_of(
    keyed("ghp_", LETTERS, 36),
    keyed("github_pat_", LETTERS + "_", 60),
    keyed("glpat-", LETTERS, 20),
    keyed("npm_", LETTERS, 36),
    keyed("pypi-", LETTERS, 80),
    keyed("xoxb-", string.digits + "-", 40),
    keyed("AKIA", string.ascii_uppercase + string.digits, 16),
    keyed("AIza", LETTERS, 35),
    keyed("sk-1", LETTERS, 40),
    keyed("sk_live_9", LETTERS, 24),
    keyed("aa-", LETTERS, 40),
    keyed("dckr_pat_", LETTERS, 27),
    keyed("base64:", LETTERS, 43),
    keyed("123456789:AA", LETTERS, 33),
    st.tuples(*[keyed(p, LETTERS, 30) for p in ("eyJ", "eyJ", "S")]).map(".".join),
)


@settings(max_examples=150, deadline=None)
@given(SHAPES, st.sampled_from(["", " ", "«", '"', "توکن", "=", "/", "من توکنم رو گذاشتم: "]))
def test_a_token_of_a_known_shape_never_survives(token: str, before: str) -> None:
    assert token not in mask_secrets(f"{before}{token}» خطا داد")


BODY = "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfnygWyF0ZtPq7RkUhVn\n" * 4 + "kq83hQ==\n"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        PEM.replace("\n", "\\n"),
        PEM.replace("\n", "\r\n"),
        PEM.replace("RSA ", ""),
        PEM[: -len("-----END RSA PRIVATE KEY-----")],
        PEM[40:],
        PEM + "\n" + PEM,
    ],
)
def test_a_private_key_is_hidden_whole_or_cut(text: str) -> None:
    masked = mask_secrets(f"before\n{text}\nError: after")
    assert "MIIE" not in masked
    assert "3VS5JJ" not in masked
    assert "kq83hQ" not in masked
    assert masked.startswith("before")
    assert masked.endswith("Error: after")


@pytest.mark.parametrize(
    "line",
    [
        "Access denied for user 'root'@'10.0.0.1' (using password: YES)",
        'FATAL: password authentication failed for user "root"',
        "KeyError: 'SECRET_KEY'",
        "django.core.exceptions.ImproperlyConfigured: The SECRET_KEY setting must not be empty.",
        "SyntaxError: Unexpected token '<', \"<!DOCTYPE\" is not valid JSON",
        "npm error 404 Not Found - GET https://registry.npmjs.org/@types/node",
        "Error: connect ECONNREFUSED 127.0.0.1:5432",
        "image sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "PWD=/usr/src/app",
        "import sklearn  # sk-learn is installed",
        "Duplicate entry 'a' for key 'users.email_unique'",
        "خطا: فایل پیدا نشد",
    ],
)
def test_text_without_a_secret_stays_as_it_is(line: str) -> None:
    assert mask_secrets(line) == line


def test_what_stands_around_a_secret_stays() -> None:
    text = "connect postgres://root:pw@db:5432/app failed: timeout"
    assert mask_secrets(text) == "connect postgres://***@db:5432/app failed: timeout"


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(), max_size=300))
def test_masking_twice_changes_nothing_more(text: str) -> None:
    masked = mask_secrets(text)
    assert mask_secrets(masked) == masked
