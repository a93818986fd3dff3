"""A mail's attachment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attachment:
    """A file attached to a mail."""

    name: str
    content: bytes
    media_type: str = "application/pdf"
