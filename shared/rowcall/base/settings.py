"""All settings, read once from the environment into one frozen object."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowcall.base.endpoints import HttpUrl, Mailbox, Networks, SmtpServer, provider_url, signing_secrets, token
from rowcall.base.errors import SettingsError
from rowcall.base.parsing import (
    Parser,
    Setting,
    database_url,
    environment_name,
    folder,
    module_name,
    number,
    one_of,
    switch,
)


def _setting(variable: str, parse: Parser, default: Any, meaning: str, unit: str = "", secret: bool = False) -> Any:
    spec = Setting(variable, parse, default, meaning, unit, secret)
    return dataclasses.field(default=default, repr=not secret, metadata={"setting": spec})


PORT = number(int, 0, 65535)


@dataclass(frozen=True)
class Settings:
    """The settings of this process; `doctor` shows where each comes from."""

    database_url: str | None = _setting(
        "DATABASE_URL",
        database_url,
        None,
        "The PostgreSQL to use; without it, the local server that `rowcall up` has created.",
        secret=True,
    )
    home: Path = _setting(
        "ROWCALL_HOME",
        folder,
        Path(".rowcall"),
        "Folder for the local server's data and for what `rowcall up` writes.",
    )
    postgres: str | None = _setting(
        "ROWCALL_POSTGRES",
        one_of("auto", "machine", "wheel"),
        None,
        "Which PostgreSQL programs the local server uses: `machine` (those installed on this machine), `wheel` (those"
        " of the extra `local`), or `auto` (the first of these that it finds). If it is set, every command creates a"
        " local server where there is none; otherwise only `rowcall up` does.",
    )
    postgres_port: int = _setting(
        "ROWCALL_POSTGRES_PORT", PORT, 0, "Port of the local server on loopback; 0 picks a free port."
    )
    app: str | None = _setting(
        "ROWCALL_APP",
        module_name,
        None,
        "Your app's package: all processes import its `job_types`, workers also its `handlers`, the API its `routes`.",
    )
    api_host: str = _setting("ROWCALL_API_HOST", str.strip, "127.0.0.1", "Address the API listens on.")
    api_port: int = _setting("ROWCALL_API_PORT", PORT, 8000, "Port the API listens on; 0 picks a free port.")
    api_workers: int = _setting("ROWCALL_API_WORKERS", number(int, 1, 64), 2, "Processes that answer requests.")
    api_threads: int = _setting("ROWCALL_API_THREADS", number(int, 1, 64), 4, "Threads in each of those processes.")
    rate_limit: float = _setting(
        "ROWCALL_RATE_LIMIT",
        number(float, 0, 100_000),
        50.0,
        "Requests a second that one API key can make on average, divided among the API's processes; 0 for no limit.",
    )
    rate_burst: int = _setting(
        "ROWCALL_RATE_BURST",
        number(int, 1, 100_000),
        100,
        "Requests that one API key can make in a burst, divided among the API's processes.",
    )
    trusted_proxies: Networks | None = _setting(
        "ROWCALL_TRUSTED_PROXIES",
        Networks.parse,
        None,
        "Addresses or networks of your own proxies, separated by commas. The API counts wrong keys per client, and"
        " takes the client's address from X-Forwarded-For only if the request comes from one of these.",
    )
    environment: str | None = _setting(
        "ROWCALL_ENVIRONMENT",
        environment_name,
        None,
        "Name of this environment, such as `production`, `staging` or `local`; every screen of the operator's page"
        " shows it in a colour. Without it, the page shows the name of the database.",
    )
    page_without_tls: bool = _setting(
        "ROWCALL_PAGE_WITHOUT_TLS",
        switch,
        False,
        "`on` lets the operator's page change things over plain HTTP on any address. Without it, the page is read-only"
        " there unless the browser is on this machine.",
    )
    metrics_public: bool = _setting(
        "ROWCALL_METRICS_PUBLIC",
        switch,
        False,
        "`on` makes /metrics public; otherwise it needs a key with the scope `read`.",
    )
    lease: float = _setting(
        "ROWCALL_LEASE",
        number(float, 1, 86400),
        120.0,
        "How long a worker may hold a run without a heartbeat.",
        unit="seconds",
    )
    heartbeat: float = _setting(
        "ROWCALL_HEARTBEAT",
        number(float, 0.1, 28800),
        30.0,
        "How often a worker renews its leases; at most a third of the lease.",
        unit="seconds",
    )
    concurrency: int = _setting(
        "ROWCALL_CONCURRENCY", number(int, 1, 1000), 10, "Runs that one worker process handles at a time."
    )
    poll: float = _setting(
        "ROWCALL_POLL",
        number(float, 0.01, 3600),
        1.0,
        "How often an idle worker polls for due runs, retries, expired leases and schedules.",
        unit="seconds",
    )
    grace: float = _setting(
        "ROWCALL_GRACE",
        number(float, 0, 3600),
        25.0,
        "How long running handlers may continue after a worker gets the signal to stop.",
        unit="seconds",
    )
    tick_bound: int = _setting(
        "ROWCALL_TICK_BOUND",
        number(int, 1, 100_000),
        500,
        "The maximum number of nominal times of one definition that a tick decides; the next tick continues.",
    )
    lock_timeout: float = _setting(
        "ROWCALL_LOCK_TIMEOUT",
        number(float, 0.1, 3600),
        3.0,
        "How long a migration waits for a table lock before it releases its own locks and tries again.",
        unit="seconds",
    )
    smtp: SmtpServer | None = _setting(
        "ROWCALL_SMTP_URL",
        SmtpServer.parse,
        None,
        "Mail server: `smtp://user:password@host:587` (STARTTLS; `?starttls=never` for none) or"
        " `smtps://user:password@host:465`. Without it, emails are written to files in `mail` in ROWCALL_HOME.",
        secret=True,
    )
    mail_from: Mailbox | None = _setting(
        "ROWCALL_MAIL_FROM", Mailbox.parse, None, "Sender of all emails: `Name <address>` or only the address."
    )
    mail_timeout: float = _setting(
        "ROWCALL_MAIL_TIMEOUT",
        number(float, 1, 3600),
        120.0,
        "How long sending one email may take; a low value causes unknown outcomes.",
        unit="seconds",
    )
    webhook_secrets: tuple[bytes, ...] = _setting(
        "ROWCALL_WEBHOOK_SECRET",
        signing_secrets,
        (),
        "Secret from which the signing secret of each webhook URL is derived: `whsec_` and base64. `rowcall"
        " webhook-secret` prints a URL's secret. During a rotation: the new and the old secret, separated by a space.",
        secret=True,
    )
    webhook_allow_loopback: bool = _setting(
        "ROWCALL_WEBHOOK_ALLOW_LOOPBACK",
        switch,
        False,
        "`on` allows webhooks to this machine, even over http; for development and tests.",
    )
    webhook_timeout: float = _setting(
        "ROWCALL_WEBHOOK_TIMEOUT",
        number(float, 1, 3600),
        30.0,
        "How long delivering one webhook may take.",
        unit="seconds",
    )
    payment_url: HttpUrl | None = _setting(
        "ROWCALL_PAYMENT_URL",
        provider_url,
        None,
        "Payment provider with an API like Stripe's, such as `https://api.stripe.com`.",
    )
    payment_key: str | None = _setting(
        "ROWCALL_PAYMENT_KEY", token, None, "Secret key for the payment provider.", secret=True
    )
    payment_timeout: float = _setting(
        "ROWCALL_PAYMENT_TIMEOUT",
        number(float, 1, 3600),
        80.0,
        "How long one request to the payment provider may take.",
        unit="seconds",
    )
    payment_key_horizon: float = _setting(
        "ROWCALL_PAYMENT_KEY_HORIZON",
        number(float, 0, 2592000),
        82800.0,
        "How long a charge may be repeated with the same key; must be shorter than the time for which the provider"
        " keeps keys (Stripe: 24 hours).",
        unit="seconds",
    )
    files: Path | None = _setting(
        "ROWCALL_FILES", folder, None, "Folder for generated files; without it, `files` in ROWCALL_HOME."
    )
    archive: Path | None = _setting(
        "ROWCALL_ARCHIVE", folder, None, "Folder for the archive of pruned runs; without it, `archive` in ROWCALL_HOME."
    )
    log_format: str = _setting(
        "ROWCALL_LOG_FORMAT",
        one_of("auto", "json", "text"),
        "auto",
        "Format of log lines: `auto` is text on a terminal and JSON elsewhere.",
    )
    log_level: str = _setting(
        "ROWCALL_LOG_LEVEL", one_of("debug", "info", "warning", "error"), "info", "The lowest level that is logged."
    )

    @property
    def mail_folder(self) -> Path:
        """The folder that emails are written to without a mail server."""
        return self.home / "mail"

    @property
    def file_folder(self) -> Path:
        """The folder for generated files."""
        return self.files or self.home / "files"

    @property
    def archive_folder(self) -> Path:
        """The folder for the archive of pruned runs."""
        return self.archive or self.home / "archive"

    def __post_init__(self) -> None:
        if self.heartbeat * 3 > self.lease:
            raise SettingsError(
                f"ROWCALL_HEARTBEAT is {self.heartbeat:g} seconds and must be at most a third of ROWCALL_LEASE"
                f" ({self.lease:g} seconds): set it to {self.lease / 3:g} or less"
            )
        for variable, is_set, other, needed in (
            ("ROWCALL_SMTP_URL", self.smtp, "ROWCALL_MAIL_FROM", self.mail_from),
            ("ROWCALL_PAYMENT_URL", self.payment_url, "ROWCALL_PAYMENT_KEY", self.payment_key),
            ("ROWCALL_PAYMENT_KEY", self.payment_key, "ROWCALL_PAYMENT_URL", self.payment_url),
        ):
            if is_set and not needed:
                raise SettingsError(f"{variable} is set, and {other} is not: set it too")


def all_settings() -> dict[str, Setting]:
    """Return the settings by field name, in the order of their declaration."""
    return {field.name: field.metadata["setting"] for field in dataclasses.fields(Settings)}


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings.  One error reports all invalid values; an empty value counts as not set."""
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for name, setting in all_settings().items():
        try:
            text = setting.text(environment)
            if text:
                values[name] = setting.parse(text)
        except SettingsError as error:
            wrong.append(str(error))
        except ValueError as error:
            was = "invalid" if setting.secret else repr(text)
            wrong.append(f"{setting.variable} is {was} and must be {error}")
    if wrong:
        raise SettingsError("; ".join(wrong))
    return Settings(**values)


def source(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return where a field's value came from."""
    setting = all_settings()[name]
    if setting.secret and environment.get(setting.file_variable, "").strip():
        return "file"
    return "environment" if environment.get(setting.variable, "").strip() else "default"
