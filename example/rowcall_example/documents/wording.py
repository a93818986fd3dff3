"""Words and figures as people read them, the same in every kind of document."""

from __future__ import annotations

import unicodedata
from datetime import date

LONGEST_NAME = 80

# Beyond that a share tells nobody anything.
LARGEST_SHARE = 999

# They turn the direction of all text that follows, also of what is not the name's.
DIRECTION_MARKS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def one_line(text: str) -> str:
    """What somebody typed, fit for a subject or a sentence: on one line, no control characters, not endless."""
    visible = "".join(" " if unicodedata.category(sign) in ("Cc", "Zl", "Zp") else sign for sign in text)
    words = " ".join(visible.translate(DIRECTION_MARKS).split())
    return words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1].rstrip()}…"


def counted(number: int, one: str, many: str = "") -> str:
    """1 order, 1,234 orders."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def day_text(day: date) -> str:
    """20 November 2026."""
    return f"{day.day} {day:%B} {day.year}"


def days_text(first: date, last: date) -> str:
    """9–15 November 2026, naming month and year twice only where they differ."""
    if first.year != last.year:
        return f"{day_text(first)} – {day_text(last)}"
    if first.month != last.month:
        return f"{first.day} {first:%B} – {day_text(last)}"
    return f"{first.day}–{day_text(last)}" if first != last else day_text(first)


def change_text(now: int, before: int) -> str:
    """How a count moved: +5 (+17%), −3 (−9%), unchanged; without a share where there was nothing before."""
    if now == before:
        return "unchanged"
    share = f" ({share_text(now, before)})" if before else ""
    return f"{_sign(now, before)}{abs(now - before):,}{share}"


def share_text(now: int, before: int) -> str:
    """How an amount moved: +17%, −9%, unchanged, or new."""
    if now == before:
        return "unchanged"
    if not before:
        return "new"
    share = round(abs(now - before) * 100 / before)
    return f"{_sign(now, before)}{share}%" if share <= LARGEST_SHARE else f"over {LARGEST_SHARE}%"


def _sign(now: int, before: int) -> str:
    return "+" if now > before else "−"
