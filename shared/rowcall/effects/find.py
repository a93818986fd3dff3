"""Find effects by what an operator knows about them: the key, or a reference, a recipient or a Message-ID.

A key is found by its unique index, however old it is.  The other columns have no index, because each would slow down
every effect; so they are compared in the newest SCANNED_MOST effects of each table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_value
from rowcall.base.errors import EffectInvalid, EffectNotFound
from rowcall.base.redaction import storable
from rowcall.effects.keys import key_of
from rowcall.effects.kinds import KINDS, OTHER_EFFECTS, TABLES, Table, message_id
from rowcall.effects.lists import declared_kinds, listed, show_effect
from rowcall.queue.fragments import BY_INDEX

SCANNED_MOST = 20_000

# How many effects of each table are returned at most, the newest first.
FOUND_MOST = 20

# Table -> the columns, besides provider_reference, by which a person recognizes an effect.
KNOWN_BY = {
    "sent_emails": ("recipient", "message_id"),
    "payments": ("invoice_id",),
    "delivered_webhooks": ("url",),
    "generated_files": ("path", "sha256"),
}

MESSAGE_ID = re.compile(r"<?([a-z_0-9]+)\.([0-9]{1,18})\.[0-9]{20}@rowcall\.invalid>?")


def _has_key(table: Table) -> str:
    """Return the condition for the key; it begins with the first column of the unique index."""
    kind = ["kind = ANY(%(kinds)s::text[])"] if table.shared else []
    return " AND ".join([*kind, *(f"{column} = %({column})s" for column in table.key)])


def _is_known_by(table: Table) -> str:
    columns = ("provider_reference", *KNOWN_BY.get(table.name, ()))
    return f"lower(%(text)s) IN ({', '.join(f'lower({column}::text)' for column in columns)})"


# Uses the table's unique index.
BY_KEY = {table.name: f"{listed(table)} WHERE {_has_key(table)} ORDER BY id DESC LIMIT %(limit)s" for table in TABLES}

# The newest effect that a search does not reach, by the primary key; 0 if it reaches all.
BOUND = {
    table.name: f"SELECT coalesce((SELECT id FROM rowcall.{table.name} ORDER BY id DESC OFFSET %(most)s LIMIT 1), 0)"
    for table in TABLES
}

# Scans the primary key from the newest effect to the bound.
BY_REFERENCE = {
    table.name: f"{listed(table)} WHERE id > %(id)s AND {_is_known_by(table)} ORDER BY id DESC LIMIT %(limit)s"
    for table in TABLES
}


@dataclass(frozen=True)
class Found:
    """The effects that were found, the newest first; `searched_all` is false if older ones were not searched."""

    effects: list[Row]
    searched_all: bool = True


def find_effects(connection: Connection, text: str, most: int = SCANNED_MOST) -> Found:
    """Return the effects with this key or Message-ID; if there are none, those with this reference or recipient."""
    text = text.strip()
    if not text or text != storable(text):
        return Found([])
    if exact := [*_with_key(connection, text), *_with_message_id(connection, text)]:
        return Found(_newest_first(exact))
    found, searched_all = [], True
    for table in TABLES:
        bound: int = fetch_value(connection, BY_INDEX + BOUND[table.name], {"most": most})
        values = {"id": bound, "text": text, "limit": FOUND_MOST}
        found += fetch_all(connection, BY_INDEX + BY_REFERENCE[table.name], values)
        searched_all = searched_all and bound == 0
    return Found(_newest_first(found), searched_all)


def _with_key(connection: Connection, text: str) -> list[Row]:
    kinds = declared_kinds(connection)
    return [
        row
        for table in TABLES
        if (key := _as_key(table, text)) is not None
        for row in fetch_all(connection, BY_INDEX + BY_KEY[table.name], {**key, "kinds": kinds, "limit": FOUND_MOST})
    ]


def _as_key(table: Table, text: str) -> Mapping[str, Any] | None:
    """Return the columns of a key as lists show it, with / between them; None if this table has no such key."""
    if table is OTHER_EFFECTS:
        return {"key": text}
    values: list[str] = text.split("/", len(table.key) - 1)
    if len(values) < len(table.key):
        return None
    try:
        read = {name: _as(kind, value) for (name, kind), value in zip(table.key.items(), values, strict=True)}
        return key_of(KINDS[table.name], read)
    except (EffectInvalid, ValueError):
        return None


def _as(kind: type, value: str) -> Any:
    if kind is int:
        return int(value) if re.fullmatch(r"-?[0-9]{1,19}", value, re.ASCII) else value
    return date.fromisoformat(value) if kind is date else value


def _with_message_id(connection: Connection, text: str) -> list[Row]:
    """Return the effect whose email has this Message-ID, which contains the effect's id."""
    read = MESSAGE_ID.fullmatch(text)
    if read is None or int(read[2]) > LARGEST_ID:
        return []
    try:
        row = show_effect(connection, read[1], int(read[2]))
    except EffectNotFound:
        return []
    return [row] if message_id(read[1], row["id"], row["intent_at"]) == f"<{text.strip('<>')}>" else []


def _newest_first(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["intent_at"], row["id"]), reverse=True)
