"""What others have said, as words that can be shown."""

from __future__ import annotations

EXCERPT_CHARACTERS = 200


def describe(error: Exception) -> str:
    """An error in words, also one without any."""
    return str(error) or type(error).__name__


def excerpt(body: bytes) -> str:
    """The begin of an answer, fit to be shown: it is a stranger's text."""
    text = "".join(letter if letter.isprintable() else " " for letter in body.decode(errors="replace"))
    return " ".join(text.split())[:EXCERPT_CHARACTERS]
