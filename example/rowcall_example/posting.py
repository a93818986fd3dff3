"""Posting: a letter goes to a user as a mail, at most once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowcall.effects import Effect
from rowcall_example.business.users import User
from rowcall_example.documents.letter import Letter
from rowcall_worker.attempt.context import Run
from rowcall_worker.gateways import Attachment


def post(run: Run, letter: Letter, user: User, *, key: str, content: Mapping[str, Any]) -> Effect:
    """Send it under this key, and tell what the mail server called it."""

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

    # Whom it goes to and what it says may be corrected between two attempts; what it is about may not.
    details = {"recipient": user.email, "subject": letter.subject}
    return run.effect("sent_emails", key=key, content=content, details=details, perform=send)
