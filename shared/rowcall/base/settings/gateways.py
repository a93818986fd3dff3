"""The settings of the gateways: mail, webhooks, payments and files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rowcall.base.endpoints import HttpUrl, Mailbox, SmtpServer, provider_url, signing_secrets, token
from rowcall.base.parsing import folder, number, switch
from rowcall.base.settings.declare import setting
from rowcall.base.settings.processes import ProcessSettings


@dataclass(frozen=True)
class GatewaySettings(ProcessSettings):
    """The settings that gateways use; declared after those of processes."""

    smtp: SmtpServer | None = setting(
        "ROWCALL_SMTP_URL",
        SmtpServer.parse,
        None,
        "Mail server: `smtp://user:password@host:587` (STARTTLS; `?starttls=never` for none) or"
        " `smtps://user:password@host:465`. Without it, emails are written to files in `mail` in ROWCALL_HOME.",
        secret=True,
    )
    mail_from: Mailbox | None = setting(
        "ROWCALL_MAIL_FROM", Mailbox.parse, None, "Sender of all emails: `Name <address>` or only the address."
    )
    mail_timeout: float = setting(
        "ROWCALL_MAIL_TIMEOUT",
        number(float, 1, 3600),
        120.0,
        "How long sending one email may take; a low value causes unknown outcomes.",
        unit="seconds",
    )
    webhook_secrets: tuple[bytes, ...] = setting(
        "ROWCALL_WEBHOOK_SECRET",
        signing_secrets,
        (),
        "Secret from which the signing secret of each webhook URL is derived: `whsec_` and base64. `rowcall"
        " webhook-secret` prints a URL's secret. During a rotation: the new and the old secret, separated by a space.",
        secret=True,
    )
    webhook_allow_loopback: bool = setting(
        "ROWCALL_WEBHOOK_ALLOW_LOOPBACK",
        switch,
        False,
        "`on` allows webhooks to this machine, even over http; for development and tests.",
    )
    webhook_timeout: float = setting(
        "ROWCALL_WEBHOOK_TIMEOUT",
        number(float, 1, 3600),
        30.0,
        "How long delivering one webhook may take.",
        unit="seconds",
    )
    payment_url: HttpUrl | None = setting(
        "ROWCALL_PAYMENT_URL",
        provider_url,
        None,
        "Payment provider with an API like Stripe's, such as `https://api.stripe.com`.",
    )
    payment_key: str | None = setting(
        "ROWCALL_PAYMENT_KEY", token, None, "Secret key for the payment provider.", secret=True
    )
    payment_timeout: float = setting(
        "ROWCALL_PAYMENT_TIMEOUT",
        number(float, 1, 3600),
        80.0,
        "How long one request to the payment provider may take.",
        unit="seconds",
    )
    payment_key_horizon: float = setting(
        "ROWCALL_PAYMENT_KEY_HORIZON",
        number(float, 0, 2592000),
        82800.0,
        "How long a charge may be repeated with the same key; must be shorter than the time for which the provider"
        " keeps keys (Stripe: 24 hours).",
        unit="seconds",
    )
    files: Path | None = setting(
        "ROWCALL_FILES", folder, None, "Folder for generated files; without it, `files` in ROWCALL_HOME."
    )
    archive: Path | None = setting(
        "ROWCALL_ARCHIVE", folder, None, "Folder for the archive of pruned runs; without it, `archive` in ROWCALL_HOME."
    )
