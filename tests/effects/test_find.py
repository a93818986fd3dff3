"""Effects are found by what an operator knows of them, and a search reads a bounded part of the ledger."""

from __future__ import annotations

import pytest

from rowcall import effects
from rowcall.base.database import Connection, fetch_all, fetch_one
from rowcall.effects import find
from rowcall.effects.kinds import message_id

COLUMNS = "run_id, lease_no, content_hash, state, applied_at, provider_reference"
VALUES = "1, 1, '', 'applied', now(), %(reference)s"

# Kind -> its own columns and values, the key as lists show it, and other words that find it.
ROWS = {
    "sent_emails": ("idempotency_key, recipient, message_id", "'mail:1', 'Ada@example.org', '<m1@mail>'", "mail:1"),
    "sent_reports": ("user_id, week_start_date", "7, '2026-03-23'", "7/2026-03-23"),
    "payments": ("idempotency_key, invoice_id", "'charge:1', 4711", "charge:1"),
    "delivered_webhooks": ("event_id, url", "'event/1', 'https://example.org/hook'", "event/1"),
    "generated_files": (
        "type, date, key, path",
        "'sales', '2026-03-23', 'a/b', '/files/ab.csv'",
        "sales/2026-03-23/a/b",
    ),
    "sms": ("kind, key", "'sms', 'welcome:1'", "welcome:1"),
}

BY_MORE = {
    "ada@EXAMPLE.org": "sent_emails",
    "<m1@mail>": "sent_emails",
    "4711": "payments",
    "https://example.org/hook": "delivered_webhooks",
    "/files/ab.csv": "generated_files",
}


def insert(connection: Connection, kind: str, reference: str | None = None) -> int:
    """Insert this kind's effect of ROWS."""
    table = kind if kind in effects.KINDS else "other_effects"
    columns, values, _ = ROWS[kind]
    sql = f"INSERT INTO rowcall.{table} ({columns}, {COLUMNS}) VALUES ({values}, {VALUES}) RETURNING id"
    row = fetch_one(connection, sql, {"reference": reference})
    assert row is not None
    found: int = row["id"]
    return found


def found(connection: Connection, text: str) -> list[tuple[str, str]]:
    """Return the kind and the key of each effect that is found."""
    return [(row["kind"], row["key"]) for row in effects.find_effects(connection, text).effects]


@pytest.mark.parametrize("kind", ROWS)
def test_an_effect_is_found_by_its_key_as_lists_show_it(connection: Connection, kind: str) -> None:
    for each in ROWS:
        insert(connection, each)
    key = ROWS[kind][2]
    assert found(connection, f" {key} ") == [(kind, key)]
    assert found(connection, f"{key}0") == []


@pytest.mark.parametrize(("text", "kind"), BY_MORE.items())
def test_an_effect_is_found_by_what_a_person_knows_of_it(connection: Connection, text: str, kind: str) -> None:
    for each in ROWS:
        insert(connection, each)
    assert found(connection, text) == [(kind, ROWS[kind][2])]


@pytest.mark.parametrize("kind", ROWS)
def test_an_effect_of_each_kind_is_found_by_its_reference(connection: Connection, kind: str) -> None:
    insert(connection, kind, "ch_7")
    assert found(connection, "CH_7") == [(kind, ROWS[kind][2])]


def test_an_email_is_found_by_the_message_id_that_it_is_sent_with(connection: Connection) -> None:
    effect_id = insert(connection, "sent_emails")
    row = effects.show_effect(connection, "sent_emails", effect_id)
    its_own = message_id("sent_emails", effect_id, row["intent_at"])
    assert found(connection, its_own) == found(connection, its_own.strip("<>")) == [("sent_emails", "mail:1")]
    assert found(connection, its_own.replace(f".{effect_id}.", f".{effect_id + 1}.")) == []
    year = f"{row['intent_at']:%Y}"
    assert found(connection, its_own.replace(year, "1999")) == [], "of an effect that the key no longer has"


def test_keys_are_found_however_old_and_references_among_the_newest(connection: Connection) -> None:
    insert(connection, "payments", "ch_7")
    more = f"INSERT INTO rowcall.payments (idempotency_key, {COLUMNS}) SELECT number, {VALUES}"
    fetch_all(connection, f"{more} FROM generate_series(1, 5) AS number", {"reference": "other"})
    assert [row["key"] for row in effects.find_effects(connection, "charge:1", most=5).effects] == ["charge:1"]
    assert effects.find_effects(connection, "ch_7", most=5) == effects.Found([], searched_all=False)
    reached = effects.find_effects(connection, "ch_7", most=6)
    assert (len(reached.effects), reached.searched_all) == (1, True)


@pytest.mark.parametrize("text", ["", " ", "nul\0", "\ud800", "7/someday", "x/2026-03-23", "9" * 30 + "/2026-03-23"])
def test_what_cannot_be_a_key_finds_nothing(connection: Connection, text: str) -> None:
    insert(connection, "sent_reports")
    assert found(connection, text) == []


def test_at_most_a_few_of_each_table_are_returned_the_newest_first(connection: Connection) -> None:
    more = f"INSERT INTO rowcall.payments (idempotency_key, {COLUMNS}) SELECT number, {VALUES}"
    fetch_all(connection, f"{more} FROM generate_series(1, 30) AS number", {"reference": "shared"})
    rows = effects.find_effects(connection, "shared").effects
    assert [int(row["key"]) for row in rows] == list(range(30, 30 - find.FOUND_MOST, -1))
