"""What is sent: a letter, and the files that it carries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A file of a letter; its HTML shows it as `cid:<content_id>` where it has one."""

    name: str
    media_type: str
    content: bytes
    content_id: str | None = None


@dataclass(frozen=True)
class Letter:
    """A mail without its envelope: the same in plain text and in HTML, pictures in the HTML, and files beside it."""

    subject: str
    text: str
    html: str
    pictures: tuple[Part, ...] = ()
    attachments: tuple[Part, ...] = ()
