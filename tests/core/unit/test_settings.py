"""Settings: read once, checked at the start, and never printed if they are secret."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest
from psycopg2.extensions import parse_dsn

from rowcall.base import settings
from rowcall.base.errors import SettingsError
from rowcall.base.parsing import connection_keywords
from rowcall.base.redaction import redacted
from tests.reference.settings import as_markdown

DOCS = Path(__file__).parents[3] / "docs"


def test_without_an_environment_the_defaults_hold() -> None:
    assert settings.read({}) == settings.Settings()


def test_an_empty_variable_counts_as_not_set() -> None:
    assert settings.read({"ROWCALL_LEASE": " "}).lease == 120


def test_they_cannot_be_changed_afterwards() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.read({}).lease = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("variable", "text", "must"),
    [
        ("ROWCALL_LEASE", "soon", "a number from 1 to 86400"),
        ("ROWCALL_LEASE", "nan", "a number from 1 to 86400"),
        ("ROWCALL_LEASE", "inf", "a number from 1 to 86400"),
        ("ROWCALL_API_PORT", "65536", "a whole number from 0 to 65535"),
        ("ROWCALL_API_PORT", "8000.5", "a whole number from 0 to 65535"),
        ("ROWCALL_METRICS_PUBLIC", "yes", "one of off, on"),
        ("ROWCALL_TRUSTED_PROXIES", "10.0.0.1/8", "addresses or networks such as 192.0.2.7 or 10.0.0.0/8"),
        ("ROWCALL_TRUSTED_PROXIES", "proxy.example", "addresses or networks such as 192.0.2.7 or 10.0.0.0/8"),
        ("ROWCALL_TRUSTED_PROXIES", "10.0.0.0/8 all", "addresses or networks such as 192.0.2.7 or 10.0.0.0/8"),
        ("ROWCALL_ALERT_EMAILS", "ops@example.com, dev", "email addresses such as ops@example.com"),
        ("ROWCALL_ALERT_DUE", "10", "a number from 60 to 604800"),
        ("ROWCALL_PAGE_URL", "jobs.example.com/admin", "a URL such as https://example.com/hooks"),
        ("ROWCALL_PAGE_URL", "https://jobs.example.com/admin?x=1", "a URL that ends with /admin"),
        ("ROWCALL_WORKER_METRICS_PORT", "99999", "a whole number from 0 to 65535"),
        ("ROWCALL_POSTGRES", "oracle", "one of auto, machine, wheel"),
        ("ROWCALL_APP", "my shop", "the name of a Python package"),
        ("ROWCALL_LOG_LEVEL", "loud", "one of debug, info, warning, error"),
        ("ROWCALL_MAIL_FROM", "somebody", "an email address such as name@example.com"),
        ("ROWCALL_MAIL_TIMEOUT", "0", "a number from 1 to 3600"),
        ("ROWCALL_WEBHOOK_ALLOW_LOOPBACK", "yes", "one of off, on"),
        ("ROWCALL_PAYMENT_URL", "http://example.com", "an https URL .http only on loopback."),
        ("ROWCALL_PAYMENT_KEY_HORIZON", "-1", "a number from 0 to 2592000"),
    ],
)
def test_a_wrong_value_names_the_variable_what_it_was_and_what_it_must_be(variable: str, text: str, must: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} is '{re.escape(text)}' and must be {must}"):
        settings.read({variable: text})


def test_all_wrong_values_are_told_at_once() -> None:
    with pytest.raises(SettingsError, match=r"ROWCALL_API_PORT .*; ROWCALL_LEASE "):
        settings.read({"ROWCALL_LEASE": "x", "ROWCALL_API_PORT": "y"})


def test_a_heartbeat_slower_than_a_third_of_the_lease_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"ROWCALL_HEARTBEAT is 30 seconds .* at most a third .* set it to 20 or less"
    ):
        settings.read({"ROWCALL_LEASE": "60"})


@pytest.mark.parametrize(
    ("alone", "value", "missing"),
    [
        ("ROWCALL_SMTP_URL", "smtp://mail.example.com", "ROWCALL_MAIL_FROM"),
        ("ROWCALL_PAYMENT_URL", "https://api.example.com", "ROWCALL_PAYMENT_KEY"),
        ("ROWCALL_PAYMENT_KEY", "sk_1", "ROWCALL_PAYMENT_URL"),
    ],
)
def test_half_of_what_a_gateway_needs_is_told_at_the_start(alone: str, value: str, missing: str) -> None:
    with pytest.raises(SettingsError, match=f"{alone} is set, and {missing} is not: set it too"):
        settings.read({alone: value})


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("ROWCALL_SMTP_URL", "ftp://ada:hush@mail.example.com"),
        ("ROWCALL_ALERT_WEBHOOKS", "https://chat.example.com/hush, https://chat.example.com/other"),
        ("ROWCALL_ALERT_WEBHOOKS", "chat.example.com/hush"),
        ("ROWCALL_BROKER_URL", "ada:hush@rabbit.example.com:5672"),
        ("ROWCALL_PING_URL", "hc-ping.com/hush"),
        ("ROWCALL_WEBHOOK_SECRET", "hush"),
        ("ROWCALL_PAYMENT_KEY", "hush hush"),
    ],
)
def test_no_wrong_secret_of_a_service_is_repeated(variable: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} is invalid and must be") as error:
        settings.read({variable: text})
    assert "hush" not in str(error.value)


def test_the_secrets_of_gateways_are_shown_nowhere() -> None:
    environment = {
        "ROWCALL_SMTP_URL": "smtp://ada:hush@mail.example.com",
        "ROWCALL_MAIL_FROM": "Ada <ada@example.com>",
        "ROWCALL_WEBHOOK_SECRET": "whsec_" + "aHVz" * 8,
        "ROWCALL_PAYMENT_URL": "https://api.example.com",
        "ROWCALL_PAYMENT_KEY": "hush",
    }
    chosen = settings.read(environment)
    told = {setting.variable: setting.shown(getattr(chosen, name)) for name, setting in settings.all_settings().items()}
    assert "hus" not in repr(chosen) + repr(told)
    assert [told[name] for name in environment] == [
        "(set, not shown)",
        "Ada <ada@example.com>",
        "(set, not shown)",
        "https://api.example.com/",
        "(set, not shown)",
    ]
    assert told["ROWCALL_WEBHOOK_ALLOW_LOOPBACK"] == "off"


def test_a_secret_may_stand_in_a_file_and_is_hidden_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "payment_key"
    file.write_text("sk_in_a_file\n")
    environment = {"ROWCALL_PAYMENT_URL": "https://api.example.com", "ROWCALL_PAYMENT_KEY_FILE": str(file)}
    assert settings.read(environment).payment_key == "sk_in_a_file"
    assert settings.source("payment_key", environment) == "file"
    assert redacted("it was sk_in_a_file", environment) == "it was ***"


def test_a_byte_order_mark_is_no_part_of_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_bytes(b"\xef\xbb\xbfpostgresql://me@db/app\r\n")
    assert settings.read({"DATABASE_URL_FILE": str(file)}).database_url == "postgresql://me@db/app"


def test_a_secret_in_a_file_and_in_the_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://me@db/app")
    environment = {"DATABASE_URL": "postgresql://me@db/other", "DATABASE_URL_FILE": str(tmp_path / "url")}
    with pytest.raises(SettingsError, match="DATABASE_URL and DATABASE_URL_FILE are both set: unset one of them"):
        settings.read(environment)
    assert redacted("plain", environment) == "plain"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff"])
def test_a_file_that_holds_no_secret_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=f"ROWCALL_WEBHOOK_SECRET_FILE names {file}, which ") as error:
        settings.read({"ROWCALL_WEBHOOK_SECRET_FILE": str(file)})
    assert "Traceback" not in str(error.value)


def test_a_secret_is_read_from_a_regular_file_of_a_bounded_size_alone(tmp_path: Path) -> None:
    pipe, long = tmp_path / "pipe", tmp_path / "long"
    os.mkfifo(pipe)
    long.write_text("x" * 70_000)
    for file, complaint in (
        (pipe, "is not a regular file"),
        ("/dev/zero", "is not a"),
        (long, "contains more than 65536"),
    ):
        with pytest.raises(SettingsError, match=f"ROWCALL_PAYMENT_KEY_FILE names {file}, which {complaint}"):
            settings.read({"ROWCALL_PAYMENT_KEY_FILE": str(file)})


def test_only_a_secret_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("9000")
    assert settings.read({"ROWCALL_API_PORT_FILE": str(tmp_path / "port")}).api_port == 8000


@pytest.mark.parametrize("url", ["mysql://me:hush@db/app", "hush", "hush=", "host='hush", "mode=hush"])
def test_a_wrong_secret_is_not_repeated(url: str) -> None:
    for variable in ("DATABASE_URL", "ROWCALL_READ_URL"):
        with pytest.raises(SettingsError, match=f"{variable} is invalid and must be a URL") as error:
            settings.read({variable: url})
        assert "hush" not in str(error.value)


def test_a_secret_is_neither_in_the_repr_nor_in_what_is_shown() -> None:
    chosen = settings.read({"DATABASE_URL": "postgres://me:hush@db/app"})
    assert "hush" not in repr(chosen)
    assert settings.all_settings()["database_url"].shown(chosen.database_url) == "(set, not shown)"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2"])
def test_a_url_with_any_driver_is_the_same_database(scheme: str) -> None:
    assert settings.read({"DATABASE_URL": f"{scheme}://me@db/app"}).database_url == "postgresql://me@db/app"


def test_the_keywords_of_an_address_are_read_as_libpq_reads_them() -> None:
    for address in (
        r"host=db dbname = 'my \' app' password=a\ b",
        "host=h1,h2 port=1,2",
        "service=shop",
        "user='' host=x",
    ):
        assert settings.read({"DATABASE_URL": f" {address} "}).database_url == address
        assert connection_keywords(address) == parse_dsn(address), address


def test_every_setting_says_what_it_means_and_belongs_to_rowcall() -> None:
    for setting in settings.all_settings().values():
        assert setting.variable == "DATABASE_URL" or setting.variable.startswith("ROWCALL_")
        assert setting.meaning.endswith(".")


def test_the_page_of_settings_is_the_one_the_code_makes() -> None:
    assert (DOCS / "settings.md").read_text() == as_markdown(), "run make docs"
