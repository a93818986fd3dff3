"""Formats errors and answers from other programs so that they can be shown."""

from __future__ import annotations

EXCERPT_CHARACTERS = 200


def describe(error: Exception) -> str:
    """Return an error as text, even if it has no message."""
    return str(error) or type(error).__name__


def excerpt(body: bytes) -> str:
    """Return the beginning of an answer, in a form that is safe to show."""
    text = "".join(letter if letter.isprintable() else " " for letter in body.decode(errors="replace"))
    return " ".join(text.split())[:EXCERPT_CHARACTERS]
