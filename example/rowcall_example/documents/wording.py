"""Words and numbers for people, the same in all documents."""

from __future__ import annotations

import unicodedata
from datetime import date

# The company that sends the emails, and where it is.
COMPANY = "Harbour Supplies"
ADDRESS = "12 Quay Street, Portside"

LONGEST_NAME = 80

# A larger percentage means nothing to a reader.
LARGEST_SHARE = 999

# These change the direction of all text that follows them, even beyond the name.
DIRECTION_MARKS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def one_line(text: str) -> str:
    """Make typed text fit for a subject or a sentence: one line, no control characters, limited length."""
    visible = "".join(" " if unicodedata.category(sign) in ("Cc", "Zl", "Zp") else sign for sign in text)
    words = " ".join(visible.translate(DIRECTION_MARKS).split())
    return words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1].rstrip()}…"


def counted(number: int, one: str, many: str = "") -> str:
    """Return 1 order, or 1,234 orders."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def day_text(day: date) -> str:
    """Return 20 November 2026."""
    return f"{day.day} {day:%B} {day.year}"


def days_text(first: date, last: date) -> str:
    """Return 9–15 November 2026, repeating month and year only if they differ."""
    if first.year != last.year:
        return f"{day_text(first)} – {day_text(last)}"
    if first.month != last.month:
        return f"{first.day} {first:%B} – {day_text(last)}"
    return f"{first.day}–{day_text(last)}" if first != last else day_text(first)


def change_text(now: int, before: int) -> str:
    """Return the change of a count: +5 (+17%), −3 (−9%), unchanged; without a percentage if it was zero before."""
    if now == before:
        return "unchanged"
    share = f" ({share_text(now, before)})" if before else ""
    return f"{_sign(now, before)}{abs(now - before):,}{share}"


def share_text(now: int, before: int) -> str:
    """Return the change of an amount: +17%, −9%, unchanged, or new."""
    if now == before:
        return "unchanged"
    if not before:
        return "new"
    share = round(abs(now - before) * 100 / before)
    return f"{_sign(now, before)}{share}%" if share <= LARGEST_SHARE else f"over {LARGEST_SHARE}%"


def _sign(now: int, before: int) -> str:
    return "+" if now > before else "−"
