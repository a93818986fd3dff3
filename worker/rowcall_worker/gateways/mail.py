"""Mail: the interface for handlers, and the folder that emails go to if no mail server is set."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rowcall.base.endpoints import Mailbox
from rowcall.base.files import Files
from rowcall_worker.gateways.attachment import Attachment
from rowcall_worker.gateways.message import Letter, compose

NO_PICTURES: Mapping[str, bytes] = MappingProxyType({})


class Mail(ABC):
    """The interface with which handlers send mail."""

    def __init__(self, sender: Mailbox) -> None:
        self._sender = sender

    def send(
        self,
        *,
        to: str,
        subject: str,
        text: str,
        message_id: str,
        name: str = "",
        html: str | None = None,
        pictures: Mapping[str, bytes] = NO_PICTURES,
        attachments: Sequence[Attachment] = (),
    ) -> str:
        """Send one email to one address, and return the id that the other side gave it.

        `pictures` are PNGs by the names that the HTML uses: `<img src="cid:chart">`. Raises Unusable for content that
        an email cannot have, Refused if this email will never be accepted, Unavailable if it was certainly not sent and
        may be tried again, and OutcomeUnknown if it was sent and no answer arrived.
        """
        return self._deliver(
            compose(
                self._sender,
                to=to,
                name=name,
                subject=subject,
                text=text,
                html=html,
                pictures=pictures,
                attachments=attachments,
                message_id=message_id,
            )
        )

    @abstractmethod
    def _deliver(self, letter: Letter) -> str: ...


class MailFolder(Mail):
    """Emails as files, for a machine without a mail server; a repeated email replaces its file."""

    def __init__(self, folder: Files, sender: Mailbox) -> None:
        super().__init__(sender)
        self._folder = folder

    def _deliver(self, letter: Letter) -> str:
        readable = re.sub(r"[^A-Za-z0-9._=+@-]", "_", letter.message_id.strip("<>"))[:60]
        digest = hashlib.sha256(letter.message_id.encode()).hexdigest()[:12]
        return self._folder.write(f"mail_{readable}-{digest}.eml", letter.content).path
