from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from app.errors import SettingsError
from app.settings import VARIABLES, Settings, describe


def test_an_empty_environment_gives_the_documented_defaults() -> None:
    settings = Settings.from_env({"HOME": "/home/ada"})
    assert (settings.host, settings.port, settings.log_level) == ("127.0.0.1", 8000, "INFO")
    assert settings.data_dir == Path("/home/ada/.cache/liara-docs-mcp")
    assert settings.avalai_base_url == "https://api.avalai.ir/v1"
    assert (settings.embed_model, settings.embed_dim) == ("text-embedding-3-small", 1536)
    assert settings.no_proxy_hosts == ("api.avalai.ir",)
    assert settings.liara
    assert settings.sync_on_start
    assert not settings.reindex
    unset = (settings.avalai_api_key, settings.mcp_token, settings.docs_config, settings.public_url)
    assert unset == (None, None, None, None)
    assert (settings.allowed_hosts, settings.allowed_origins) == ((), ())


def test_every_field_belongs_to_one_variable_and_the_home_folder() -> None:
    names = [variable.field for variable in VARIABLES]
    assert sorted([*names, "home"]) == sorted(field.name for field in fields(Settings))
    assert len({variable.name for variable in VARIABLES}) == len(VARIABLES)


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("PORT", "80a", "0 to 65535"),
        ("PORT", "65536", "0 to 65535"),
        ("PORT", "۸۰۰۰", "0 to 65535"),
        ("PORT", "9" * 5000, "0 to 65535"),
        ("EMBED_DIM", "-1", "1 to 16384"),
        ("LIARA", "maybe", "off"),
        ("SYNC_ON_START", "2", "off"),
        ("LOG_LEVEL", "LOUD", "DEBUG"),
        ("PUBLIC_URL", "mcp.example.com", "http or https"),
        ("PUBLIC_URL", "https://user:pw@example.com", "without user name"),
        ("PUBLIC_URL", "https://example.com:99999", "http or https"),
        ("AVALAI_BASE_URL", "ftp://example.com", "http or https"),
        ("MCP_ALLOWED_HOSTS", " , ,", "at least one"),
        ("TOOL_TIMEOUT_SECONDS", "0", "0.1 to 600"),
        ("TOOL_TIMEOUT_SECONDS", "nan", "0.1 to 600"),
        ("MAX_BODY_BYTES", "12", "1024 to"),
        ("STALE_AFTER", "a month", "12h or 30d"),
        ("STALE_AFTER", "0d", "12h or 30d"),
    ],
)
def test_a_bad_value_is_refused_with_its_variable_and_what_is_accepted(
    name: str, value: str, accepted: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        Settings.from_env({name: value})
    assert name in str(refusal.value)
    assert repr(value.strip()) in str(refusal.value)
    assert accepted in str(refusal.value)


@pytest.mark.parametrize("name", ["MCP_TOKEN", "AVALAI_API_KEY"])
def test_a_secret_is_in_no_message_repr_or_description(name: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        Settings.from_env({name: "two words"})
    assert name in str(refusal.value)
    assert "two words" not in str(refusal.value)
    settings = Settings.from_env({name: "s3cret-value"})
    assert "s3cret" not in repr(settings)
    assert "s3cret" not in str(describe(settings))
    assert (name, "set") in describe(settings)


def test_an_empty_value_counts_as_unset() -> None:
    empty = Settings.from_env({variable.name: " " for variable in VARIABLES} | {"HOME": "/h"})
    assert empty == Settings.from_env({"HOME": "/h"})


def test_without_a_home_the_data_goes_below_the_folder_for_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert Settings.from_env({}).data_dir.parent == tmp_path


def test_a_tilde_is_the_home_folder_of_the_given_environment() -> None:
    settings = Settings.from_env({"HOME": "/home/ada", "DATA_DIR": "~/docs", "DOCS_CONFIG": "~x"})
    assert settings.data_dir == Path("/home/ada/docs")
    assert settings.docs_config == Path("~x")


def test_lists_are_split_at_commas() -> None:
    settings = Settings.from_env({"MCP_ALLOWED_HOSTS": "a.example, b.example:* ,"})
    assert settings.allowed_hosts == ("a.example", "b.example:*")


@pytest.mark.parametrize("value", ["0", "off", "No", "FALSE"])
def test_a_flag_takes_the_usual_words_for_no(value: str) -> None:
    assert not Settings.from_env({"LIARA": value}).liara


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("off", None),
        ("", timedelta(days=30)),
    ],
)
def test_an_age_is_hours_days_or_off(text: str, age: timedelta | None) -> None:
    assert Settings.from_env({"STALE_AFTER": text}).stale_after == age
