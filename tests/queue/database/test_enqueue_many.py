"""Enqueue many: in one call, in order, all or none, and an error says which of them is wrong."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import psycopg2
import pytest

from rowcall.base import database
from rowcall.base.database import Connection, fetch_all, fetch_value
from rowcall.base.errors import RunInvalid
from rowcall.job_types import JobType
from rowcall.job_types.builtin import AnyPayload
from rowcall.job_types.declaration import PRIORITY_FIRST
from rowcall.queue import enqueue, enqueue_many
from rowcall.queue.keys.insert import WITH_KEYS_MOST
from rowcall.queue.keys.keyless import CHARACTERS_MOST, RUNS_MOST

# now() is the start of the transaction, so this does not count what other tests of this module committed.
ADDED = "SELECT count(*) FROM rowcall.job_runs WHERE created_at >= now()"

REFUSE_THE_LAST = f"""
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON rowcall.job_runs FOR EACH ROW
    WHEN (NEW.payload = '{{"n": {RUNS_MOST}}}') EXECUTE FUNCTION refuse()
"""


def test_many_without_keys_are_all_or_none_also_where_each_statement_commits_itself(fresh_url: str) -> None:
    with closing(database.connect(fresh_url)) as caller:
        caller.autocommit = True
        fetch_all(caller, REFUSE_THE_LAST)
        with pytest.raises(psycopg2.errors.RaiseException):
            enqueue_many(caller, "noop", [{"n": n} for n in range(RUNS_MOST + 1)])
        assert fetch_value(caller, "SELECT count(*) FROM rowcall.job_runs") == 0


def test_a_run_without_keys_has_the_columns_of_its_type_and_its_request(connection: Connection) -> None:
    live = JobType("shop_live", schema=AnyPayload, unique="live", queue="mail", max_attempts=3)
    options: Any = {
        "key_owner": "api:shop",
        "created_by": "web",
        "priority": PRIORITY_FIRST,
        "run_at": datetime(2100, 1, 1, tzinfo=UTC),
    }
    outcomes = [enqueue(connection, live, {}, **options), *enqueue_many(connection, live, [{}, {}], **options)]
    columns = "job_type, queue, max_attempts, unique_mode, key_owner, created_by, priority, run_at, status"
    rows = fetch_all(connection, f"SELECT {columns} FROM rowcall.job_runs WHERE created_at >= now()")
    asked = {**options, "job_type": "shop_live", "queue": "mail", "max_attempts": 3, "unique_mode": "live"}
    assert rows == [{**asked, "status": "queued"}] * len(outcomes)


def test_large_payloads_in_one_call_are_several_statements(connection: Connection) -> None:
    text = "a" * 60_000
    large = [{"n": n, "text": text} for n in range(2 * CHARACTERS_MOST // len(text) + 2)]
    ids = [outcome.run_id for outcome in enqueue_many(connection, "noop", large)]
    assert len(ids) == len(large)
    found = fetch_all(connection, "SELECT id FROM rowcall.job_runs WHERE created_at >= now() ORDER BY payload -> 'n'")
    assert [row["id"] for row in found] == ids


def test_more_payloads_with_keys_than_one_statement_can_take_are_refused(connection: Connection) -> None:
    large = [{"text": "a" * 60_000}] * (WITH_KEYS_MOST // 60_000 + 1)
    with pytest.raises(RunInvalid, match="payloads: exceed 67108864 characters together: divide them"):
        enqueue_many(connection, "noop", large, keys=[f"key-{number}" for number in range(len(large))])


@pytest.mark.parametrize(
    ("payloads", "keys", "complaint"),
    [
        (None, None, "payloads: must be a list of objects, one for each run"),
        ({"n": 1}, None, "payloads: must be a list of objects, one for each run"),
        ("abc", None, "payloads: must be a list of objects, one for each run"),
        ([{}, {}], ["a"], "keys: must be 2, one for each payload, but there are 1"),
        ([{}, {}], "ab", "keys: must be a list of keys, one for each payload"),
        ([{}, {}], {"a", "b"}, "keys: must be a list of keys, one for each payload"),
        ([{}, {}], 2, "keys: must be a list of keys, one for each payload"),
        ([{}, "x"], None, "payloads: 1: payload: must be an object"),
        ([{}, {}], ["a", ""], "payloads: 1: idempotency_key: must be 1 to 255 printable characters"),
    ],
)
def test_what_is_wrong_with_one_of_many_is_said_with_its_place(
    connection: Connection, payloads: Any, keys: Any, complaint: str
) -> None:
    with pytest.raises(RunInvalid, match=complaint):
        enqueue_many(connection, "noop", payloads, keys=keys)
    assert fetch_value(connection, ADDED) == 0


def test_payloads_and_keys_may_come_from_generators(connection: Connection) -> None:
    outcomes = enqueue_many(connection, "noop", ({"n": n} for n in range(3)), keys=(f"g{n}" for n in range(3)))
    assert fetch_value(connection, ADDED) == len(outcomes) == 3
