"""A letter, and the files that it carries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A file of a letter; if it has a content_id, the HTML shows it as `cid:<content_id>`."""

    name: str
    media_type: str
    content: bytes
    content_id: str | None = None


@dataclass(frozen=True)
class Letter:
    """An email without its envelope: plain text, the same in HTML, pictures for the HTML, and attachments."""

    subject: str
    text: str
    html: str
    pictures: tuple[Part, ...] = ()
    attachments: tuple[Part, ...] = ()
