"""Cursors: the position after a page of a list, as text that the request for the next page contains."""

from __future__ import annotations

import base64
import hashlib
import struct
from datetime import UTC, datetime, timedelta

from rowcall.base.errors import FilterInvalid

# Two numbers that say where the next page begins, and a mark that identifies the list: in a list with other filters,
# the cursor would skip rows.
MARK_BYTES = 6
FORM = struct.Struct(f">qq{MARK_BYTES}s")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def written(scope: str, first: int, second: int) -> str:
    """Return the cursor for this position in this list."""
    return _text(FORM.pack(first, second, _mark(scope)))


def read(scope: str, cursor: str) -> tuple[int, int]:
    """Return the position; raise FilterInvalid if the text is not a cursor of this list."""
    packed = _packed(cursor)
    if len(packed) != FORM.size or packed[-MARK_BYTES:] != _mark(scope):
        raise _of_another_list()
    first, second, _ = FORM.unpack(packed)
    return first, second


def written_time(scope: str, at: datetime, second: int = 0) -> str:
    """Return the cursor for a position that begins with a time."""
    return written(scope, (at - EPOCH) // MICROSECOND, second)


def read_time(scope: str, cursor: str) -> tuple[datetime, int]:
    """Return the position of a cursor of `written_time`; raise FilterInvalid like `read`."""
    microseconds, second = read(scope, cursor)
    try:
        return EPOCH + microseconds * MICROSECOND, second
    except OverflowError:
        raise FilterInvalid({"cursor": "names a time that does not exist"}) from None


def written_text(scope: str, place: str) -> str:
    """Return the cursor for a position that is a string, such as a name."""
    return _text(_mark(scope) + place.encode())


def read_text(scope: str, cursor: str) -> str:
    """Return the position of a cursor of `written_text`; raise FilterInvalid like `read`."""
    packed = _packed(cursor)
    place = _place(packed)
    if place is None or packed[:MARK_BYTES] != _mark(scope):
        raise _of_another_list()
    return place


def not_a_cursor() -> FilterInvalid:
    """Return the error for a text that no list has returned as its `next`."""
    return FilterInvalid({"cursor": "is not a cursor: send the `next` of the previous page unchanged"})


def _of_another_list() -> FilterInvalid:
    return FilterInvalid(
        {
            "cursor": "belongs to another list, or to this one with other filters or in another order: send the"
            " `next` of the previous page with the same filters and order, or leave it out to start again"
        }
    )


def _packed(cursor: str) -> bytes:
    """Return the bytes of the text; raise FilterInvalid if they are in neither form of a cursor."""
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        raise not_a_cursor() from None
    # The decoder ignores characters outside its alphabet.
    if _text(packed) != cursor or (len(packed) != FORM.size and _place(packed) is None):
        raise not_a_cursor()
    return packed


def _place(packed: bytes) -> str | None:
    """Return the text that follows the mark, or None if there is none."""
    try:
        place = packed[MARK_BYTES:].decode()
    except UnicodeDecodeError:
        return None
    return place if place and place.isprintable() else None


def _text(packed: bytes) -> str:
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def _mark(scope: str) -> bytes:
    return hashlib.sha256(scope.encode()).digest()[:MARK_BYTES]
