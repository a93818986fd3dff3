"""Receivers of alerts: an email address, or a URL that takes a POST of JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from rowcall.base.endpoints import HttpUrl, mail_address

FORM = "an email address such as ops@example.com, or a URL such as https://example.com/hooks"

# Enough to tell apart the URLs of one host.
DIGEST_CHARACTERS = 8


@dataclass(frozen=True)
class Receiver:
    """One receiver: either the address of a mailbox, or a URL, which may be a secret."""

    address: str | None = None
    url: HttpUrl | None = None

    @property
    def label(self) -> str:
        """The receiver's public name: for a URL, its host and a digest that distinguishes it from other URLs there."""
        if self.url is None:
            return str(self.address)
        return f"{self.url.host}#{hashlib.sha256(str(self.url).encode()).hexdigest()[:DIGEST_CHARACTERS]}"

    def __str__(self) -> str:
        return self.label

    @classmethod
    def parse(cls, text: str) -> Receiver:
        """Parse one address or URL."""
        try:
            return cls(url=HttpUrl.parse(text)) if "://" in text else cls(address=mail_address(text))
        except ValueError:
            raise ValueError(FORM) from None


def addresses(text: str) -> tuple[Receiver, ...]:
    """Parse email addresses, separated by spaces or commas."""
    try:
        return unique(Receiver(address=mail_address(word)) for word in text.replace(",", " ").split())
    except ValueError:
        raise ValueError("email addresses such as ops@example.com, separated by spaces or commas") from None


def urls(text: str) -> tuple[Receiver, ...]:
    """Parse URLs, separated by spaces."""
    if any(word.endswith(",") or ",http" in word for word in text.split()):
        raise ValueError("URLs separated by spaces, without commas between them")
    try:
        return unique(Receiver(url=HttpUrl.parse(word)) for word in text.split())
    except ValueError as error:
        raise ValueError(f"{error}, or several of these separated by spaces") from None


def unique(those: Iterable[Receiver]) -> tuple[Receiver, ...]:
    """Return each receiver once, in the given order."""
    return tuple(dict.fromkeys(those))
