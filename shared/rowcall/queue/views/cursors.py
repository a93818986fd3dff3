"""Cursors: where a page of a list ends, as text that the next request hands back."""

from __future__ import annotations

import base64
import hashlib
import struct

from rowcall.base.errors import FilterInvalid

# Two numbers to go on behind, and of what list: a cursor among other filters would pass over rows without a word.
FORM = struct.Struct(">qq6s")


def written(scope: str, first: int, second: int) -> str:
    """The cursor behind this place of this list."""
    return _text(FORM.pack(first, second, _mark(scope)))


def read(scope: str, cursor: str) -> tuple[int, int]:
    """The place; FilterInvalid for what is no cursor of this list."""
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        first, second, mark = FORM.unpack(packed)
    except (ValueError, struct.error):
        raise _no_cursor() from None
    # The decoder passes over what is not of its alphabet.
    if _text(packed) != cursor:
        raise _no_cursor()
    if mark != _mark(scope):
        raise FilterInvalid(
            {"cursor": "belongs to a list with other filters: send it with those, or leave it out to begin anew"}
        )
    return first, second


def _no_cursor() -> FilterInvalid:
    return FilterInvalid({"cursor": "is no cursor: send what `next` of the page before said, as it is"})


def _text(packed: bytes) -> str:
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def _mark(scope: str) -> bytes:
    return hashlib.sha256(scope.encode()).digest()[:6]
