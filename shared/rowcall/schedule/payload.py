"""Placeholders for the nominal time in payloads: `{date-1}` is the day before it, in the schedule's zone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule.fields import shown

PLACEHOLDERS = (
    "{date}, {date-1}, {date+7}, {time}, {week}, {week-1}, {month} and {month-1} name the nominal time,"
    " and {{ and }} are braces"
)

BRACES = {"{{": "{", "}}": "}"}
TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

# Four digits, because no schedule needs a time further away.
PLACEHOLDER = re.compile(r"(date|week|month)([+-][0-9]{1,4})?|time")


def rendered(payload: Mapping[str, Any], nominal: datetime, zone: ZoneInfo) -> dict[str, Any]:
    """Return the payload for this nominal time; keys are not changed."""
    local = nominal.astimezone(zone)
    return {key: _value(value, local, f"payload.{key}") for key, value in payload.items()}


def names_time(payload: Mapping[str, Any]) -> bool:
    """Return whether any value has a placeholder, so that each nominal time has a different payload."""
    return any(
        _placeholder(token, path) is not None
        for path, text in _texts(payload, "payload")
        for token in TOKEN.finditer(text)
    )


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield every string value, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{number}]")


def _value(value: Any, local: datetime, path: str) -> Any:
    if isinstance(value, str):
        return TOKEN.sub(lambda token: _written(token, local, path), value)
    if isinstance(value, Mapping):
        return {key: _value(inner, local, f"{path}.{key}") for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(inner, local, f"{path}[{number}]") for number, inner in enumerate(value)]
    return value


def _placeholder(token: re.Match[str], path: str) -> re.Match[str] | None:
    """Return the text between the braces; None if the token is an escaped brace."""
    if token[0] in BRACES:
        return None
    if token[1] is None:
        raise ScheduleInvalid("payload", f"{path} has a single {token[0]!r}: {PLACEHOLDERS}")
    found = PLACEHOLDER.fullmatch(token[1])
    if found is None:
        raise ScheduleInvalid("payload", f"{path} has {shown(token[0])}, which is not a placeholder: {PLACEHOLDERS}")
    return found


def _written(token: re.Match[str], local: datetime, path: str) -> str:
    placeholder = _placeholder(token, path)
    if placeholder is None:
        return BRACES[token[0]]
    if placeholder[0] == "time":
        return local.isoformat(timespec="seconds")
    try:
        return _of_day(placeholder[1], local.date(), int(placeholder[2] or 0))
    except (ValueError, OverflowError):
        raise ScheduleInvalid(
            "payload", f"{path} has {token[0]!r}, which for {local.date()} is not between the years 1 and 9999"
        ) from None


def _of_day(unit: str, day: date, shift: int) -> str:
    if unit == "month":
        years, month = divmod(day.year * 12 + day.month - 1 + shift, 12)
        return date(years, month + 1, 1).isoformat()[:7]
    moved = day + timedelta(days=shift * (7 if unit == "week" else 1))
    if unit == "date":
        return moved.isoformat()
    iso = moved.isocalendar()
    return f"{iso.year:04d}-W{iso.week:02d}"
