"""Gateways: what handlers use as `run.gateways`, each loaded at its first use.

A worker that cron starts every minute usually needs none of them, and their dependencies (TLS, HTTP, mail) load slowly.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from rowcall.base.endpoints import Mailbox, endpoint_secret
from rowcall.base.errors import NotConfigured
from rowcall.base.files import Files, Written
from rowcall.base.settings import Settings
from rowcall_worker.gateways.attachment import Attachment
from rowcall_worker.gateways.charge import Charge, PaymentProvider

if TYPE_CHECKING:
    from rowcall_worker.gateways.alerts import Alerts
    from rowcall_worker.gateways.mail import Mail
    from rowcall_worker.gateways.pings import Pings
    from rowcall_worker.gateways.webhook import Webhook

__all__ = ["Attachment", "Charge", "Gateways", "Written", "endpoint_secret"]

# The sender of emails that are only written to files.
NOBODY = Mailbox("rowcall@localhost", "Rowcall")


class Gateways:
    """Mail, webhooks, payments and files, as configured by the settings.

    A gateway whose settings are missing reports this only when it is used, so that a worker can start without settings
    that it never needs.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def mail(self) -> Mail:
        """Sends emails; without ROWCALL_SMTP_URL, writes them to files."""
        settings = self._settings
        if settings.smtp is None:
            from rowcall_worker.gateways.mail import MailFolder

            return MailFolder(Files(settings.mail_folder), settings.mail_from or NOBODY)
        from rowcall_worker.gateways.smtp import SmtpMail

        assert settings.mail_from is not None, "Settings checks this"
        return SmtpMail(settings.smtp, settings.mail_from, timeout=settings.mail_timeout)

    @cached_property
    def webhook(self) -> Webhook:
        """Delivers signed events."""
        settings = self._settings
        if not settings.webhook_secrets:
            raise NotConfigured("webhooks cannot be signed: set ROWCALL_WEBHOOK_SECRET")
        from rowcall_worker.gateways.webhook import Webhook

        return Webhook(
            settings.webhook_secrets,
            allow_loopback=settings.webhook_allow_loopback,
            timeout=settings.webhook_timeout,
        )

    @cached_property
    def alerts(self) -> Alerts:
        """Sends alerts to their receivers."""
        from rowcall_worker.gateways.alerts import Alerts

        return Alerts(self._settings, self.mail)

    @cached_property
    def pings(self) -> Pings:
        """Calls services that raise an alarm when no ping arrives."""
        from rowcall_worker.gateways.pings import Pings

        return Pings(self._settings)

    @cached_property
    def payment(self) -> PaymentProvider:
        """Charges customers."""
        settings = self._settings
        if settings.payment_url is None or settings.payment_key is None:
            raise NotConfigured("nothing can be charged: set ROWCALL_PAYMENT_URL and ROWCALL_PAYMENT_KEY")
        from rowcall_worker.gateways.payment import StripeLikeProvider

        return StripeLikeProvider(settings.payment_url, settings.payment_key, timeout=settings.payment_timeout)

    @cached_property
    def files(self) -> Files:
        """Writes files, and reads them again."""
        return Files(self._settings.file_folder)

    @cached_property
    def archive(self) -> Files:
        """Archives the runs that are pruned."""
        return Files(self._settings.archive_folder)
