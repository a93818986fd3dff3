"""`rowcall keys`: names, expiry and rotation of keys, and what the audit log keeps of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg2
import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import RowcallError
from tests.support.locks import wait_for_a_waiting_session

OPERATOR = Operator("cli:ada")


def made(connection: PgConnection, name: str = "billing", **columns: str) -> int:
    """Insert a key, with columns as SQL, and return its id."""
    prefix = api_keys.create_key(connection, name, ["read", "enqueue"], OPERATOR).split("_")[1]
    changes = "".join(f", {column} = {value}" for column, value in columns.items())
    found: int = database.fetch_value(
        connection,
        f"UPDATE rowcall.api_keys SET name = name{changes} WHERE prefix = %(prefix)s RETURNING id",
        {"prefix": prefix},
    )
    return found


def listed(connection: PgConnection, key_id: int) -> dict[str, Any]:
    [row] = [row for row in api_keys.list_keys(connection) if row["id"] == key_id]
    return row


def audited(connection: PgConnection) -> list[dict[str, Any]]:
    """Return the audit log's rows about keys."""
    rows = database.fetch_all(
        connection, "SELECT * FROM rowcall.audit_log WHERE subject = 'key' AND at = now() ORDER BY id"
    )
    assert {row["who"] for row in rows} == {OPERATOR.who}
    return rows


@pytest.mark.parametrize(
    "name",
    ["", " ", "a ", "-a", "n" * 101, "two\nlines", "nul\0", "half \ud800", "\x7f", "ümläut", "cli:ada", "a (0123abcd)"],
)
def test_a_name_is_a_word_or_some_and_cannot_look_like_another_actor(connection: PgConnection, name: str) -> None:
    with pytest.raises(RowcallError, match="a key's name must be 1 to 100 letters, digits, spaces and . _ @ -,"):
        api_keys.create_key(connection, name, ["read"], OPERATOR)
    assert api_keys.create_key(connection, "n" * 100, ["read"], OPERATOR)
    assert api_keys.create_key(connection, "2nd billing.v2_x@shop-1", ["read"], OPERATOR)


INSERT = """
INSERT INTO rowcall.api_keys (name, prefix, secret_sha256, scopes)
VALUES (%(name)s, 'ffffffff', '', ARRAY['read'])
"""


@pytest.mark.parametrize(
    "name", ["cli:ada", "two\nlines", "line\n", "billing (00000000)", " ", "", "n" * 101, "billing"]
)
def test_the_database_too_keeps_names_plain_and_unique(connection: PgConnection, name: str) -> None:
    made(connection, "billing")
    with pytest.raises(psycopg2.IntegrityError, match="api_keys_name_(plain|current)"):
        database.fetch_all(connection, INSERT, {"name": name})


def test_a_name_belongs_to_one_key(connection: PgConnection) -> None:
    key_id = made(connection)
    with pytest.raises(
        RowcallError, match=f"key {key_id} has the name 'billing': .*keys rotate {key_id}.*revoke {key_id}"
    ):
        made(connection)


@pytest.mark.parametrize("ended", ["revoked_at = now()", "expires_at = now()"])
def test_the_name_of_a_key_that_has_ended_is_free(connection: PgConnection, ended: str) -> None:
    column, _, value = ended.partition(" = ")
    old = made(connection, **{column: value})
    new = made(connection)
    assert listed(connection, new)["state"] == "active"
    assert listed(connection, old)["state"] in {"revoked", "expired"}


def test_of_two_who_make_a_key_of_one_name_at_once_one_is_refused(fresh_url: str) -> None:
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        key_id = made(one)
        with ThreadPoolExecutor(1) as second:
            waiting = second.submit(made, other)
            wait_for_a_waiting_session(fresh_url)
            one.commit()
        with pytest.raises(RowcallError, match=f"key {key_id} has the name 'billing'"):
            waiting.result()


def test_a_key_that_was_replaced_is_not_replaced_again(connection: PgConnection) -> None:
    old = made(connection)
    api_keys.rotate_key(connection, old, timedelta(hours=24), OPERATOR)
    with pytest.raises(RowcallError, match=f"key {old} has already been replaced"):
        api_keys.rotate_key(connection, old, timedelta(hours=24), OPERATOR)


def test_a_key_made_with_a_grace_takes_the_place_of_the_one_with_its_name(connection: PgConnection) -> None:
    old = made(connection, "rowcall up")
    for _ in range(2):
        assert api_keys.create_key(connection, "rowcall up", ["admin"], OPERATOR, grace=timedelta(hours=24))
    now = database.fetch_value(connection, "SELECT now()")
    assert listed(connection, old)["expires_at"] == now + timedelta(hours=24)


@pytest.mark.parametrize(
    "ends_at", [datetime(2020, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)], ids=["past", "too far"]
)
def test_a_key_ends_later_than_now_and_before_the_last_year(connection: PgConnection, ends_at: datetime) -> None:
    with pytest.raises(RowcallError, match="2020-01-01T00:00:00.00:00 is in the past|up to the year 9998, not in 9999"):
        api_keys.create_key(connection, "billing", ["read"], OPERATOR, ends_at)


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({}, "active"),
        ({"expires_at": "now() + interval '1 second'"}, "expires"),
        ({"expires_at": "now()"}, "expired"),
        ({"revoked_at": "now()", "expires_at": "now() - interval '1 day'"}, "revoked"),
    ],
)
def test_the_list_says_how_each_key_is(connection: PgConnection, columns: dict[str, str], state: str) -> None:
    assert listed(connection, made(connection, **columns))["state"] == state


def test_a_rotated_key_works_on_through_the_grace_beside_the_new_one(connection: PgConnection) -> None:
    old = made(connection)
    rotated = api_keys.rotate_key(connection, old, timedelta(hours=24), OPERATOR)
    new = api_keys.find_caller(connection, rotated.key)
    assert new is not None
    assert (new.name, new.scopes) == ("billing", frozenset({"read", "enqueue"}))
    now = database.fetch_value(connection, "SELECT now()")
    assert listed(connection, old)["expires_at"] == rotated.old_ends_at == now + timedelta(hours=24)
    assert listed(connection, new.key_id)["state"] == "active"


def test_without_a_grace_the_old_key_ends_at_once(connection: PgConnection) -> None:
    old = made(connection)
    api_keys.rotate_key(connection, old, timedelta(0), OPERATOR)
    assert listed(connection, old)["state"] == "expired"


def test_a_grace_makes_no_key_live_longer(connection: PgConnection) -> None:
    old = made(connection, expires_at="now() + interval '1 hour'")
    ends_at = listed(connection, old)["expires_at"]
    assert api_keys.rotate_key(connection, old, timedelta(days=30), OPERATOR).old_ends_at == ends_at


def test_a_key_in_place_of_one_that_expires_lives_as_long_as_that_was_to(connection: PgConnection) -> None:
    old = made(connection, created_at="now() - interval '80 days'", expires_at="now() + interval '10 days'")
    rotated = api_keys.rotate_key(connection, old, timedelta(hours=24), OPERATOR)
    now = database.fetch_value(connection, "SELECT now()")
    assert rotated.expires_at == now + timedelta(days=90)


@pytest.mark.parametrize(
    ("columns", "refused"),
    [({"revoked_at": "now()"}, "is already revoked"), ({"expires_at": "now()"}, "is already expired")],
)
def test_a_key_that_has_ended_is_not_rotated(connection: PgConnection, columns: dict[str, str], refused: str) -> None:
    key_id = made(connection, **columns)
    with pytest.raises(RowcallError, match=refused):
        api_keys.rotate_key(connection, key_id, timedelta(0), OPERATOR)


@pytest.mark.parametrize("key_id", [0, -1, 999_999, 2**63])
def test_a_key_that_is_not_there_is_told_by_its_id(connection: PgConnection, key_id: int) -> None:
    with pytest.raises(RowcallError, match=f"no key has the id {key_id}; `rowcall keys list` shows all"):
        api_keys.revoke_key(connection, key_id, OPERATOR)
    with pytest.raises(RowcallError, match=f"no key has the id {key_id}; `rowcall keys list` shows all"):
        api_keys.rotate_key(connection, key_id, timedelta(0), OPERATOR)


def test_each_change_of_a_key_is_audited_and_no_secret_is(connection: PgConnection) -> None:
    key = api_keys.create_key(connection, "billing", ["read"], OPERATOR)
    prefix, secret = key.split("_")[1:]
    old = api_keys.find_caller(connection, key)
    assert old is not None
    rotated = api_keys.rotate_key(connection, old.key_id, timedelta(0), OPERATOR)
    api_keys.revoke_key(connection, old.key_id, OPERATOR)
    created, created_too, rotation, revocation = audited(connection)
    assert (created["action"], created["subject_id"]) == ("create", old.key_id)
    unlimited = {"job_types": None, "queues": None, "expires_at": None}
    assert created["after"] == {"name": "billing", "prefix": prefix, "scopes": ["read"], **unlimited}
    assert rotation["action"] == "rotate"
    assert rotation["before"] == {"expires_at": None}
    assert rotation["after"]["replaced_by"] == created_too["after"]["prefix"] == rotated.key.split("_")[1]
    assert (revocation["action"], revocation["before"]) == ("revoke", {"revoked_at": None})
    for hidden in (secret, rotated.key.split("_")[2]):
        assert hidden not in str([created, created_too, rotation, revocation])


def test_the_secret_is_compared_whether_or_not_a_key_has_the_prefix(connection: PgConnection) -> None:
    key = api_keys.create_key(connection, "billing", ["read"], OPERATOR)
    prefix, secret = key.split("_")[1:]
    other = "0" * 8 if prefix != "0" * 8 else "1" * 8
    assert api_keys.find_caller(connection, f"rc_{prefix}_{secret}") is not None
    assert api_keys.find_caller(connection, f"rc_{other}_{secret}") is None
    # Nobody knows what the placeholder is a hash of, so it matches no secret.
    assert api_keys.find_caller(connection, f"rc_{other}_{'0' * 64}") is None
