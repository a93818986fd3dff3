"""Texts of others, in a form that can be shown."""

from __future__ import annotations

EXCERPT_CHARACTERS = 200


def describe(error: Exception) -> str:
    """An error in words, even if it has no message."""
    return str(error) or type(error).__name__


def excerpt(body: bytes) -> str:
    """The beginning of an answer, in a form that is safe to show."""
    text = "".join(letter if letter.isprintable() else " " for letter in body.decode(errors="replace"))
    return " ".join(text.split())[:EXCERPT_CHARACTERS]
