"""Words for dates, counts and changes."""

from __future__ import annotations

from datetime import date

import pytest

from rowcall_example.documents.wording import change_text, counted, days_text, one_line, share_text


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (date(2026, 11, 9), date(2026, 11, 15), "9–15 November 2026"),
        (date(2026, 9, 28), date(2026, 10, 4), "28 September – 4 October 2026"),
        (date(2025, 12, 29), date(2026, 1, 4), "29 December 2025 – 4 January 2026"),
        (date(2026, 11, 9), date(2026, 11, 9), "9 November 2026"),
    ],
)
def test_days_are_told_as_briefly_as_they_can_be(first: date, last: date, text: str) -> None:
    assert days_text(first, last) == text


@pytest.mark.parametrize(
    ("now", "before", "change", "share"),
    [
        (5, 4, "+1 (+25%)", "+25%"),
        (3, 4, "−1 (−25%)", "−25%"),
        (4, 4, "unchanged", "unchanged"),
        (0, 0, "unchanged", "unchanged"),
        (3, 0, "+3", "new"),
        (0, 3, "−3 (−100%)", "−100%"),
        (5000, 1, "+4,999 (over 999%)", "over 999%"),
    ],
)
def test_a_change_has_its_sign_and_its_share(now: int, before: int, change: str, share: str) -> None:
    assert (change_text(now, before), share_text(now, before)) == (change, share)


def test_one_is_told_otherwise_than_many() -> None:
    assert [counted(number, "order") for number in (0, 1, 2, 1234)] == [
        "0 orders",
        "1 order",
        "2 orders",
        "1,234 orders",
    ]
    assert counted(2, "currency", "currencies") == "2 currencies"


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("  a \t b\n", "a b"),
        ("a\x00b\x7f\x9bc", "a b c"),
        ("\u202eevil\u2066", "evil"),
        ("x" * 81, "x" * 79 + "…"),
        ("family 👨\u200d👩\u200d👧", "family 👨\u200d👩\u200d👧"),
        ("", ""),
    ],
)
def test_what_was_typed_becomes_one_line(typed: str, line: str) -> None:
    assert one_line(typed) == line
