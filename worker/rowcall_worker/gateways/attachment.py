"""An email's attachment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attachment:
    """A file attached to an email."""

    name: str
    content: bytes
    media_type: str = "application/pdf"
