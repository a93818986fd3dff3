"""Alerts: an email, or a POST of JSON to a URL that the operator chose, which may be in a private network."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from rowcall.base.errors import Refused, Unavailable, Unusable
from rowcall.base.receivers import Receiver
from rowcall.base.settings import Settings
from rowcall.job_types import catalogue
from rowcall.job_types.alerting import Message, receivers_by_label
from rowcall_worker.gateways.mail import Mail
from rowcall_worker.gateways.webhook import Webhook

MENTIONS = re.compile("@(?=(?:all|channel|everyone|here)\\b)")


class Alerts:
    """Sends messages about incidents to their receivers."""

    def __init__(self, settings: Settings, mail: Mail) -> None:
        self.environment = settings.environment
        self.page = None if settings.page_url is None else str(settings.page_url).rstrip("/")
        self._mail = mail
        self._webhook = Webhook(
            settings.webhook_secrets, allow_loopback=True, timeout=settings.webhook_timeout, trusted=True
        )
        self._receivers: Mapping[str, Receiver] = receivers_by_label(settings, catalogue())

    def receiver(self, label: str) -> Receiver:
        """Return the receiver with this label; a URL must be set here, but an address need not be.

        The message is retried: in a deploy, or if several apps share a database, another worker may have the URL.
        """
        if "@" in label:
            return Receiver(address=label)
        if label not in self._receivers:
            raise Unavailable(
                f"this worker has no URL of {label}: if it should receive alerts, set ROWCALL_ALERT_WEBHOOKS for all"
                " workers, or start a worker of the app whose on_dead names it"
            )
        return self._receivers[label]

    def send(self, receiver: Receiver, message: Message, event_id: str, message_id: str) -> str:
        """Send the message, and return how it was accepted.

        A refused message is retried as after an outage: an alert is worth more than a few calls to a wrong address.
        """
        try:
            return self._sent(receiver, message, event_id, message_id)
        except Unusable:
            raise
        except Refused as error:
            raise Unavailable(str(error)) from error

    def _sent(self, receiver: Receiver, message: Message, event_id: str, message_id: str) -> str:
        if receiver.url is None:
            assert receiver.address is not None, "a receiver has an address or a URL"
            return self._mail.send(
                to=receiver.address, subject=message.subject, text=message.text, message_id=message_id
            )
        body = {
            "type": "rowcall.alert",
            "text": chat_text(f"{message.subject}\n\n{message.text}"),
            "subject": message.subject,
            "environment": self.environment,
            "incidents": list(message.incidents),
        }
        return self._webhook.deliver(url=str(receiver.url), event_id=event_id, payload=body)


def chat_text(text: str) -> str:
    """Escape a text for Slack and Mattermost, so that an error in it can neither link nor mention anybody."""
    return MENTIONS.sub("@\N{ZERO WIDTH SPACE}", html.escape(text, quote=False))
