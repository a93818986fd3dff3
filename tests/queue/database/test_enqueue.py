"""Enqueue: in the caller's transaction, validated, once per key."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
import sqlalchemy
import sqlalchemy.orm

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import Connection, fetch_all, fetch_value
from rowcall.base.database.pool import open_pool
from rowcall.base.errors import JobTypeUnknown, KeyConflict, RunInvalid
from rowcall.job_types.declaration import KEY_CHARACTERS
from rowcall.queue import enqueue, enqueue_as, enqueue_many, get_run
from rowcall.queue.enqueue import PAYLOAD_BYTES

# now() is the start of the transaction, so this does not count what other tests of this module committed.
ADDED = "SELECT count(*) FROM rowcall.job_runs WHERE created_at >= now()"


@pytest.fixture
def engine(module_url: str) -> Iterator[sqlalchemy.Engine]:
    engine = open_pool(module_url, pool_size=2)
    yield engine
    engine.dispose()


def test_a_run_is_queued_with_what_was_asked_for(connection: Connection) -> None:
    due = datetime(2030, 1, 1, tzinfo=UTC)
    outcome = enqueue(
        connection, "noop", {"a": 1}, key="k", run_at=due, queue="mail", priority=5, max_attempts=2, created_by="me"
    )
    run = get_run(connection, outcome.run_id)
    asked = ("status", "payload", "idempotency_key", "run_at", "queue", "priority", "max_attempts", "created_by")
    assert [run[name] for name in asked] == ["queued", {"a": 1}, "k", due, "mail", 5, 2, "me"]
    assert not outcome.replayed


def test_without_a_time_it_is_due_now_by_the_databases_clock(connection: Connection) -> None:
    run = get_run(connection, enqueue(connection, "noop", {}).run_id)
    assert run["run_at"] == fetch_value(connection, "SELECT now()")


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_it_lives_and_dies_with_a_psycopg2_transaction(module_url: str, ends: str) -> None:
    caller = database.connect(module_url)
    run_id = enqueue(caller, "noop", {}).run_id
    getattr(caller, ends)()
    assert fetch_value(caller, f"SELECT count(*) FROM rowcall.job_runs WHERE id = {run_id}") == (ends == "commit")
    caller.close()


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_it_lives_and_dies_with_a_sqlalchemy_connection(engine: sqlalchemy.Engine, ends: str) -> None:
    with engine.connect() as caller:
        run_id = enqueue(caller, "noop", {}).run_id
        getattr(caller, ends)()
    with engine.connect() as later:
        assert fetch_value(later, f"SELECT count(*) FROM rowcall.job_runs WHERE id = {run_id}") == (ends == "commit")


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_it_lives_and_dies_with_a_sqlalchemy_session(engine: sqlalchemy.Engine, ends: str) -> None:
    with sqlalchemy.orm.Session(engine) as caller:
        run_id = enqueue(caller, "noop", {}).run_id
        getattr(caller, ends)()
    with engine.connect() as later:
        assert fetch_value(later, f"SELECT count(*) FROM rowcall.job_runs WHERE id = {run_id}") == (ends == "commit")


def test_the_same_key_and_content_is_the_same_run(connection: Connection) -> None:
    first = enqueue(connection, "noop", {"a": 1}, key="k")
    second = enqueue(connection, "noop", {"a": 1}, key="k")
    assert (second.run_id, second.replayed) == (first.run_id, True)


@pytest.mark.parametrize("other", [{"payload": {"a": 2}}, {"priority": 1}, {"queue": "mail"}, {"max_attempts": 3}])
def test_the_same_key_with_other_content_is_a_conflict(connection: Connection, other: dict[str, Any]) -> None:
    first = enqueue(connection, "noop", {"a": 1}, key="k")
    with pytest.raises(KeyConflict, match=f"'k' belongs to run {first.run_id}"):
        enqueue(connection, "noop", other.pop("payload", {"a": 1}), key="k", **other)
    assert fetch_value(connection, ADDED) == 1


def test_fifty_at_once_under_one_key_are_one_run(module_url: str) -> None:
    gate = threading.Barrier(50)
    outcomes = []

    def ask() -> None:
        caller = database.connect(module_url)
        gate.wait()
        with caller:
            outcomes.append(enqueue(caller, "noop", {"a": 1}, key="fifty"))
        caller.close()

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({outcome.run_id for outcome in outcomes}) == 1
    assert sorted(outcome.replayed for outcome in outcomes) == [False] + [True] * 49


def test_ten_thousand_in_one_call_come_back_in_order(connection: Connection) -> None:
    outcomes = enqueue_many(connection, "noop", [{"n": n} for n in range(10_000)])
    ids = [outcome.run_id for outcome in outcomes]
    assert ids == sorted(set(ids))
    assert fetch_value(connection, f"SELECT payload ->> 'n' FROM rowcall.job_runs WHERE id = {ids[1234]}") == "1234"


def test_many_tell_new_replayed_and_repeated_keys_apart(connection: Connection) -> None:
    old = enqueue(connection, "noop", {"n": 0}, key="old")
    outcomes = enqueue_many(
        connection, "noop", [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 1}], keys=["old", "new", None, "new"]
    )
    assert [outcome.replayed for outcome in outcomes] == [True, False, False, True]
    assert outcomes[0].run_id == old.run_id
    assert outcomes[1].run_id == outcomes[3].run_id != outcomes[2].run_id


def test_many_with_one_conflict_add_nothing_though_the_caller_commits(connection: Connection) -> None:
    enqueue(connection, "noop", {"n": 0}, key="old")
    with pytest.raises(KeyConflict):
        enqueue_many(connection, "noop", [{"n": 1}, {"n": 2}], keys=["new", "old"])
    assert fetch_value(connection, ADDED) == 1


@pytest.mark.parametrize("kind", ["psycopg2", "sqlalchemy"])
def test_many_are_all_or_none_also_where_each_statement_commits_itself(
    module_url: str, engine: sqlalchemy.Engine, kind: str
) -> None:
    caller: Connection
    if kind == "psycopg2":
        caller = database.connect(module_url)
        caller.autocommit = True
    else:
        caller = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    enqueue(caller, "noop", {"n": 1}, key=f"{kind}:taken")
    with pytest.raises(KeyConflict):
        enqueue_many(caller, "noop", [{"n": 1}, {"n": 2}], keys=[f"{kind}:free", f"{kind}:taken"])
    assert not enqueue_many(caller, "noop", [{"n": 1}, {"n": 2}], keys=[f"{kind}:free", None])[0].replayed
    caller.close()


def test_none_of_none_is_none(connection: Connection) -> None:
    assert enqueue_many(connection, "noop", []) == []


@pytest.mark.parametrize(
    ("payload", "options", "complaint"),
    [
        ({"a": "\0"}, {}, "payload: cannot be stored as JSON: it contains a null character"),
        ({"a": "\ud800"}, {}, "payload: cannot be stored as JSON: it contains half of a surrogate pair"),
        ({"a": float("nan")}, {}, "payload: cannot be stored as JSON"),
        ({"a": object()}, {}, "payload: cannot be stored as JSON"),
        (
            {"a": "x" * PAYLOAD_BYTES},
            {},
            r"payload: is 65545 bytes as PostgreSQL writes it; the limit is 65536: store the data in a table",
        ),
        (["Ada"], {}, r"payload: must be an object \(a dict of names and values\), and is of type list$"),
        ({}, {"key": ""}, "idempotency_key: must be 1 to 255 printable characters"),
        ({}, {"key": "k" * (KEY_CHARACTERS + 1)}, "idempotency_key: must be"),
        ({}, {"key": "a\0b"}, "idempotency_key: must be"),
        ({}, {"run_at": datetime(2030, 1, 1)}, "run_at: must have an offset"),
        *(({}, {"run_at": wrong}, "run_at: must be a datetime") for wrong in ("tomorrow", date(2030, 1, 1))),
        ({}, {"queue": "No Such"}, "queue: must be lower-case words"),
        ({}, {"queue": 3}, "queue: must be lower-case words"),
        ({}, {"key": 5}, "idempotency_key: must be"),
        *(({}, {"priority": wrong}, "priority: must be a whole number") for wrong in ("a", 1.5, True, None)),
        *(({}, {"max_attempts": wrong}, "max_attempts: must be a whole number") for wrong in ("3", 2.7, True)),
        ({}, {"priority": 40_000}, "priority: must be a whole number from -32768"),
        ({}, {"max_attempts": 0}, "max_attempts: must be a whole number from 1 to 1000"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name_and_adds_nothing(
    connection: Connection, payload: Any, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(RunInvalid, match=complaint):
        enqueue(connection, "noop", payload, **options)
    assert fetch_value(connection, ADDED) == 0


def test_a_backslash_that_only_looks_like_a_null_character_is_kept(connection: Connection) -> None:
    run = get_run(connection, enqueue(connection, "noop", {"path": r"C:\u0000"}).run_id)
    assert run["payload"] == {"path": r"C:\u0000"}


def test_an_unknown_type_is_refused_with_the_known_ones(connection: Connection) -> None:
    with pytest.raises(JobTypeUnknown, match=r"no job type 'nop'; known here: .*noop"):
        enqueue(connection, "nop", {})


GOES = """
CREATE FUNCTION goes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM rowcall.job_runs WHERE idempotency_key = 'fading';
    DROP TRIGGER goes ON job_runs;
    RETURN NULL;
END $$;
"""


def test_a_key_whose_run_is_pruned_while_it_is_asked_for_is_free_again(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        before = enqueue(connection, "noop", {}, key="fading")
        database.fetch_all(connection, GOES)
        # As if prune had committed after the INSERT met the key's conflict, and before the SELECT of its holder.
        database.fetch_all(
            connection, "CREATE TRIGGER goes AFTER INSERT ON job_runs FOR EACH STATEMENT EXECUTE FUNCTION goes()"
        )
        outcome = enqueue(connection, "noop", {}, key="fading")
        assert (outcome.replayed, outcome.run_id != before.run_id) == (False, True)


def test_an_operators_request_is_his_own_and_audited_where_only_an_admin_may_make_it(connection: Connection) -> None:
    operator = Operator("cli:ada", "request-1")
    ids = [enqueue_as(connection, operator, name, {}, key=name).run_id for name in ("noop", "prune_runs")]
    runs = [get_run(connection, run_id) for run_id in ids]
    assert [(run["created_by"], run["key_owner"]) for run in runs] == [("cli:ada", "cli")] * 2
    assert enqueue_as(connection, operator, "prune_runs", {}, key="prune_runs").replayed
    audited = fetch_all(connection, "SELECT who, action, subject_id, after, request_id FROM rowcall.audit_log")
    asked = {"job_type": "prune_runs", "payload": runs[1]["payload"]}
    assert [tuple(row.values()) for row in audited] == [("cli:ada", "enqueue", runs[1]["id"], asked, "request-1")]
