"""Checks the key of an effect: the columns that identify what may happen only once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from rowcall.base.database import LARGEST_ID
from rowcall.base.errors import EffectInvalid
from rowcall.base.redaction import storable
from rowcall.effects.kinds import Kind

# An entry of the unique index is limited to 2.7 KB.
KEY_BYTES = 2000


def key_of(kind: Kind, key: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Check the key and return its value for each column; a string is enough if there is only one column."""
    columns = kind.table.key
    made_of = ", ".join(columns)
    if isinstance(key, str) and len(columns) == 1:
        key = dict.fromkeys(columns, key)
    if not isinstance(key, Mapping):
        wanted = "it must be a string" if len(columns) == 1 else f"it must be a mapping of {made_of}"
        raise EffectInvalid(f"the key of {kind.name} is {key!r}: {wanted}")
    if set(key) != set(columns):
        raise EffectInvalid(f"the key of {kind.name} consists of {made_of}, not of {', '.join(map(str, key))}")
    return {name: _part(kind.name, name, key[name], holds) for name, holds in columns.items()}


def _part(kind: str, column: str, value: Any, holds: type) -> Any:
    """Check one column's value; the error says what it must be."""
    wrong = f"{column} of {kind} is {value!r:.100}"
    if holds is str:
        return _text(value, wrong)
    if holds is int:
        if type(value) is not int or abs(value) > LARGEST_ID:
            raise EffectInvalid(f"{wrong}: it must be an integer of at most 8 bytes")
        return value
    try:
        return value if type(value) is date else date.fromisoformat(value)
    except (TypeError, ValueError):
        raise EffectInvalid(f"{wrong}: it must be a date, such as date(2026, 3, 29) or '2026-03-29'") from None


def _text(value: Any, wrong: str) -> str:
    if not isinstance(value, str) or not value:
        raise EffectInvalid(f"{wrong}: it must be a non-empty string")
    if value != storable(value):
        raise EffectInvalid(f"{wrong}: PostgreSQL cannot store NUL or half a surrogate pair")
    if (size := len(value.encode())) > KEY_BYTES:
        raise EffectInvalid(f"{wrong}..., {size} bytes; the limit is {KEY_BYTES}: use an id, or a hash of the text")
    return value
