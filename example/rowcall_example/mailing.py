"""Send a letter to a user as an email, at most once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowcall_example.documents.letter import Letter
from rowcall_example.queries.users import User
from rowcall_worker.gateways import Attachment
from rowcall_worker.handlers import Effect, Run


def mail_letter(run: Run, letter: Letter, user: User, *, key: str, content: Mapping[str, Any]) -> Effect:
    """Send the letter, unless it was already sent under this key; the effect has the mail server's reference."""

    def send(effect: Effect) -> dict[str, Any]:
        reference = run.gateways.mail.send(
            to=user.email,
            name=user.name,
            subject=letter.subject,
            text=letter.text,
            html=letter.html,
            pictures={part.content_id or part.name: part.content for part in letter.pictures},
            attachments=[Attachment(part.name, part.content, part.media_type) for part in letter.attachments],
            message_id=effect.message_id,
        )
        return {"reference": reference, "message_id": effect.message_id}

    # `content` says what the email is about, and must not change between attempts; address and subject may.
    details = {"recipient": user.email, "subject": letter.subject}
    return run.effect("sent_emails", key=key, content=content, details=details, perform=send)
