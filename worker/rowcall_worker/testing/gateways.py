"""Gateways that record instead of sending; they refuse everything that the real ones refuse."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from functools import cached_property
from ipaddress import ip_address
from typing import Any, TypeVar

from rowcall.base.endpoints import HttpUrl
from rowcall.base.errors import Declined, GatewayError, KeyReused
from rowcall.base.files import Files, Written
from rowcall.base.settings import Settings
from rowcall_worker.gateways import NOBODY, Gateways
from rowcall_worker.gateways.charge import Charge
from rowcall_worker.gateways.mail import Mail
from rowcall_worker.gateways.message import Letter
from rowcall_worker.gateways.payment import check_charge
from rowcall_worker.gateways.sockets import Address, Deadline
from rowcall_worker.gateways.webhook import Webhook

# The secret that signs webhooks if ROWCALL_WEBHOOK_SECRET is not set.
SECRET = b"the secret of webhooks in tests!"

# Names are not looked up; each counts as an address of the public internet.
SOMEWHERE = ip_address("1.1.1.1")

Answer = TypeVar("Answer")


class Recording:
    """The common part of the recording gateways."""

    def __init__(self) -> None:
        self._failures: deque[tuple[GatewayError, bool]] = deque()

    def fail_next(self, error: GatewayError, *, acted: bool = False) -> None:
        """Make the next call raise this error; with `acted`, the other side has carried out the request anyway."""
        if not isinstance(error, GatewayError):
            raise TypeError(
                f"fail_next takes an error listed in docs/gateways.md, such as Unavailable(...), not {error!r}"
            )
        if acted and error.acted == "no":
            raise ValueError(
                f"{type(error).__name__} means that nothing happened; with acted=True, use OutcomeUnknown(...)"
            )
        self._failures.append((error, acted))

    @property
    def unused(self) -> list[GatewayError]:
        """The errors that no call has raised yet."""
        return [error for error, _ in self._failures]

    def _answer(self, act: Callable[[], Answer]) -> Answer:
        """Carry out the request, and answer."""
        if not self._failures:
            return act()
        error, acted = self._failures.popleft()
        if acted:
            act()
        raise error


@dataclass(frozen=True)
class SentMail:
    """An email as its receiver gets it; `message` is the whole email."""

    to: str
    subject: str
    text: str
    message_id: str
    message: EmailMessage


class RecordingMail(Mail, Recording):
    """Emails that are kept in `sent`."""

    def __init__(self, settings: Settings) -> None:
        Mail.__init__(self, settings.mail_from or NOBODY)
        Recording.__init__(self)
        self.sent: list[SentMail] = []

    def _deliver(self, letter: Letter) -> str:
        return self._answer(lambda: self._keep(letter))

    def _keep(self, letter: Letter) -> str:
        message = message_from_bytes(letter.content, policy=default)
        assert isinstance(message, EmailMessage)
        body = message.get_body(("plain",))
        text = "" if body is None else str(body.get_content())
        self.sent.append(SentMail(letter.recipient, str(message["Subject"]), text, letter.message_id, message))
        return f"250 kept as {len(self.sent)}"


@dataclass(frozen=True)
class DeliveredEvent:
    """An event as its receiver gets it; the headers contain its signature."""

    url: str
    event_id: str
    payload: Any
    headers: Mapping[str, str]


class RecordingWebhook(Webhook, Recording):
    """Events that are kept in `delivered`; URLs are refused as in production, but no name is looked up."""

    def __init__(self, settings: Settings) -> None:
        Webhook.__init__(
            self,
            settings.webhook_secrets or (SECRET,),
            allow_loopback=settings.webhook_allow_loopback,
            timeout=settings.webhook_timeout,
            resolve=_found,
        )
        Recording.__init__(self)
        self.delivered: list[DeliveredEvent] = []

    def _send(
        self, target: HttpUrl, _: Sequence[Address], headers: Mapping[str, str], body: bytes, deadline: Deadline
    ) -> str:
        return self._answer(lambda: self._keep(target, headers, body))

    def _keep(self, target: HttpUrl, headers: Mapping[str, str], body: bytes) -> str:
        self.delivered.append(DeliveredEvent(str(target), headers["webhook-id"], json.loads(body), dict(headers)))
        return "HTTP 204"


def _found(host: str, port: int, deadline: Deadline) -> list[Address]:
    try:
        return [ip_address(host)]
    except ValueError:
        return [ip_address("127.0.0.1") if host == "localhost" else SOMEWHERE]


@dataclass(frozen=True)
class Payment:
    """A charge that was made; repeating it under its key makes no second charge."""

    amount: int
    currency: str
    customer: str
    reference: str
    idempotency_key: str


class RecordingPayment(Recording):
    """A provider that takes each charge once for each key, and keeps it in `charged`; a declined key stays declined."""

    def __init__(self) -> None:
        super().__init__()
        self.charged: list[Payment] = []
        self._declined: dict[str, Declined] = {}

    def charge(self, *, amount: int, currency: str, customer: str, reference: str, idempotency_key: str) -> Charge:
        """Charge once for each key."""
        check_charge(amount, currency, customer, reference, idempotency_key)
        payment = Payment(amount, currency, customer, reference, idempotency_key)
        if idempotency_key in self._declined:
            raise self._declined[idempotency_key]
        try:
            return self._answer(lambda: self._keep(payment))
        except Declined as error:
            self._declined[idempotency_key] = error
            raise

    def _keep(self, payment: Payment) -> Charge:
        known = {one.idempotency_key: one for one in self.charged}.get(payment.idempotency_key)
        if known not in (None, payment):
            raise KeyReused(f"the key {payment.idempotency_key!r} was used before, for another charge")
        if known is None:
            self.charged.append(payment)
        return Charge(f"pi_{self.charged.index(payment) + 1}", payment.amount, payment.currency, "succeeded")


class RecordingFiles(Files, Recording):
    """Files in a folder of the test; `written` lists them in order."""

    def __init__(self, settings: Settings) -> None:
        Files.__init__(self, settings.file_folder)
        Recording.__init__(self)
        self.written: list[Written] = []

    def write(self, path: str, content: bytes | Iterable[bytes]) -> Written:
        """Write a file, replacing an existing one."""
        return self._answer(lambda: self._keep(path, content))

    def _keep(self, path: str, content: bytes | Iterable[bytes]) -> Written:
        written = super().write(path, content)
        self.written.append(written)
        return written


class RecordingGateways(Gateways):
    """The gateways of a test, in place of `run.gateways`."""

    @cached_property
    def mail(self) -> RecordingMail:
        """Keeps emails."""
        return RecordingMail(self._settings)

    @cached_property
    def webhook(self) -> RecordingWebhook:
        """Keeps signed events."""
        return RecordingWebhook(self._settings)

    @cached_property
    def payment(self) -> RecordingPayment:
        """The payment gateway of a test, which records charges instead of making them."""
        return RecordingPayment()

    @cached_property
    def files(self) -> RecordingFiles:
        """Writes files, and reads them again."""
        return RecordingFiles(self._settings)

    @property
    def unused(self) -> list[GatewayError]:
        """The errors that should have been raised, but that no call has raised."""
        return [error for one in (self.mail, self.webhook, self.payment, self.files) for error in one.unused]
