"""A request that gets the run which holds its natural key gets this run again, whatever has happened to the run."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall import queue
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.base.errors import KeyConflict, KeyTaken, NaturalKeyConflict
from rowcall.queue import BatchRun, Enqueued, enqueue_batch, enqueue_many
from rowcall.queue.keys.holders import FREE_KEYS
from rowcall.queue.retention.erase import erase
from rowcall.status import Status
from tests.support.housekeeping import ended, expire, left, prune
from tests.support.invoices import OPERATOR, TYPES, charge, declare, end
from tests.support.rows import row_of

STORED = "SELECT idempotency_key, key_owner, run_id FROM rowcall.request_keys ORDER BY idempotency_key, key_owner"

# When another run with the same natural key is possible.
RELEASED = [("live", Status.SUCCEEDED), ("until_failed", Status.DEAD)]


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, *TYPES)


def stored(connection: PgConnection) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in fetch_all(connection, STORED)]


@pytest.mark.parametrize(("job_type", "status"), RELEASED)
def test_a_request_that_got_a_run_for_its_fact_gets_it_again_when_it_has_ended(
    connection: PgConnection, job_type: str, status: Status
) -> None:
    first = charge(connection, job_type=job_type, key="s")
    again = Enqueued(first.run_id, replayed=True)
    assert charge(connection, job_type=job_type, key="t") == again
    end(connection, first.run_id, status)
    assert charge(connection, job_type=job_type, key="t") == again
    second = charge(connection, job_type=job_type, key="u")
    assert not second.replayed
    # The new run for the fact changes nothing about the earlier requests.
    assert [charge(connection, job_type=job_type, key=key).run_id for key in "stu"] == [
        *[first.run_id] * 2,
        second.run_id,
    ]


@pytest.mark.parametrize(("job_type", "status"), RELEASED)
def test_a_run_without_a_key_has_those_of_the_requests_that_got_it(
    connection: PgConnection, job_type: str, status: Status
) -> None:
    first = charge(connection, job_type=job_type)
    assert charge(connection, job_type=job_type, key="t").replayed
    end(connection, first.run_id, status)
    assert charge(connection, job_type=job_type, key="t") == Enqueued(first.run_id, replayed=True)
    assert row_of(connection, first.run_id)["idempotency_key"] is None


@pytest.mark.parametrize("how", ["batch", "many"])
def test_a_repeated_batch_creates_nothing_though_its_run_has_ended(connection: PgConnection, how: str) -> None:
    def ask() -> list[Enqueued]:
        if how == "many":
            return enqueue_many(connection, "live", [{"invoice_id": 1}] * 2, keys=["a", "b"])
        return enqueue_batch(connection, OPERATOR, [BatchRun("live", {"invoice_id": 1}, key) for key in ("a", "b")])

    one, other = ask()
    assert (one.replayed, other) == (False, Enqueued(one.run_id, replayed=True))
    for _ in range(2):
        end(connection, one.run_id, Status.SUCCEEDED)
        assert ask() == [Enqueued(one.run_id, replayed=True)] * 2
        fetch_all(
            connection, f"UPDATE rowcall.job_runs SET status = 'queued', finished_at = NULL WHERE id = {one.run_id}"
        )


@pytest.mark.parametrize("job_type", ["charge", "live"])
@pytest.mark.parametrize("other", [{"invoice": 8}, {"job_type": "refund"}, {"priority": 1}], ids=str)
def test_its_key_with_different_content_is_refused(
    connection: PgConnection, job_type: str, other: dict[str, Any]
) -> None:
    first = charge(connection, job_type=job_type, key="s")
    charge(connection, job_type=job_type, key="t")
    with pytest.raises(KeyConflict, match=f"the idempotency key 't' belongs to run {first.run_id}"):
        charge(connection, **{"job_type": job_type, "key": "t", **other})


def test_its_key_with_different_content_is_refused_in_a_batch_too(connection: PgConnection) -> None:
    first = charge(connection, job_type="live")
    for job_type in ("live", "charge"):
        with pytest.raises(KeyConflict, match=f"'t' belongs to run {first.run_id}"):
            enqueue_many(connection, "live", [{"invoice_id": 7}, {"invoice_id": 7, "note": "other"}], keys=["t", "t"])
        charge(connection, job_type="live", key="t")
        with pytest.raises(KeyConflict, match=f"'t' belongs to run {first.run_id}"):
            enqueue_many(connection, job_type, [{"invoice_id": 1}, {"invoice_id": 2}], keys=["v", "t"])
    assert fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs") == 1


def test_a_clone_with_its_key_is_refused(connection: PgConnection) -> None:
    first = charge(connection, job_type="live")
    charge(connection, job_type="live", key="t", key_owner=OPERATOR.key_owner)
    charge(connection, job_type="live", key="u", key_owner="another caller")
    end(connection, first.run_id, Status.SUCCEEDED)
    with pytest.raises(KeyConflict, match=f"'t' belongs to run {first.run_id}"):
        queue.clone(connection, first.run_id, OPERATOR, key="t")
    assert not queue.clone(connection, first.run_id, OPERATOR, key="u").replayed


def test_a_key_of_another_owner_is_another_key(connection: PgConnection) -> None:
    first = charge(connection, job_type="live", key="t", key_owner="cli")
    assert charge(connection, job_type="live", key="t", key_owner="api:shop").replayed
    about_8 = charge(connection, 8, "live").run_id
    assert charge(connection, 8, "live", key="t", key_owner="web") == Enqueued(about_8, replayed=True)
    end(connection, first.run_id, Status.SUCCEEDED)
    assert not charge(connection, job_type="live", key="t", key_owner="api:guest").replayed
    for owner in ("cli", "api:shop"):
        assert charge(connection, job_type="live", key="t", key_owner=owner).run_id == first.run_id
    assert not charge(connection, 8, key="t").replayed
    many = enqueue_many(connection, "charge", [{"invoice_id": 9}, {"invoice_id": 10}], keys=["v", "t"], key_owner="me")
    assert [outcome.replayed for outcome in many] == [False, False]


def test_a_key_of_another_owner_is_another_key_in_batches_too(connection: PgConnection) -> None:
    def ask(owner: str, *invoices: int) -> list[Enqueued]:
        payloads = [{"invoice_id": invoice} for invoice in invoices]
        return enqueue_many(connection, "live", payloads, keys=["t", "u"], key_owner=owner)

    asked = {"cli": ask("cli", 1, 2), "api:shop": ask("api:shop", 3, 4)}
    assert not any(outcome.replayed for outcomes in asked.values() for outcome in outcomes)
    assert stored(connection) == sorted(
        (key, owner, outcome.run_id)
        for owner, outcomes in asked.items()
        for key, outcome in zip("tu", outcomes, strict=True)
    )


@pytest.mark.parametrize("job_type", ["charge", "until_failed", "live"])
def test_a_request_that_is_refused_leaves_its_key_free(connection: PgConnection, job_type: str) -> None:
    first = charge(connection, job_type=job_type)
    with pytest.raises(NaturalKeyConflict):
        charge(connection, job_type=job_type, key="t", priority=1)
    assert stored(connection) == []
    with pytest.raises(NaturalKeyConflict):
        enqueue_many(connection, job_type, [{"invoice_id": 8}, {"invoice_id": 7, "note": "other"}], keys=["u", "t"])
    assert stored(connection) == []
    assert not charge(connection, 8, job_type, key="t").replayed
    assert fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs") == 2
    assert charge(connection, 8, job_type, key="t").run_id != first.run_id


@pytest.mark.parametrize("job_type", ["charge", "live"])
def test_a_savepoint_that_is_rolled_back_leaves_its_key_free(connection: PgConnection, job_type: str) -> None:
    charge(connection, job_type=job_type)
    fetch_all(connection, "SAVEPOINT before")
    assert charge(connection, job_type=job_type, key="t").replayed
    assert not charge(connection, 8, job_type, key="u").replayed
    fetch_all(connection, "ROLLBACK TO SAVEPOINT before")
    assert not charge(connection, 9, job_type, key="t").replayed
    assert not charge(connection, 10, job_type, key="u").replayed


@pytest.mark.parametrize("job_type", ["live", "until_failed"])
def test_only_requests_that_may_meet_another_run_store_their_key_besides_the_run(
    connection: PgConnection, job_type: str
) -> None:
    single = charge(connection, 1, job_type, key="single")
    charge(connection, 2, "charge", key="ever")
    enqueue_many(connection, "charge", [{"invoice_id": 3}, {"invoice_id": 4}], keys=["ever 3", None])
    many = enqueue_many(connection, job_type, [{"invoice_id": 3}, {"invoice_id": 4}], keys=["of many", None])
    assert stored(connection) == [("of many", "app", many[0].run_id), ("single", "app", single.run_id)]


@pytest.mark.parametrize("job_type", ["charge", "live"])
def test_a_key_that_code_of_an_earlier_version_stored_only_on_its_run_is_found(
    connection: PgConnection, job_type: str
) -> None:
    first = charge(connection, job_type=job_type, key="s")
    fetch_all(connection, "DELETE FROM rowcall.request_keys")
    assert charge(connection, job_type=job_type, key="s") == Enqueued(first.run_id, replayed=True)
    with pytest.raises(KeyConflict):
        charge(connection, 8, job_type, key="s")
    assert stored(connection) == []
    end(connection, first.run_id, Status.SUCCEEDED)
    assert charge(connection, job_type=job_type, key="s").run_id == first.run_id


@pytest.mark.parametrize("job_type", ["charge", "live"])
@pytest.mark.parametrize("many", [False, True])
def test_a_key_whose_run_was_deleted_while_it_was_stored_is_free(
    connection: PgConnection, job_type: str, many: bool
) -> None:
    fetch_all(connection, "INSERT INTO rowcall.request_keys VALUES ('t', 'app', 4711, 'f')")
    if many:
        payloads = [{"invoice_id": 1}, {"invoice_id": 2}]
        assert not enqueue_many(connection, job_type, payloads, keys=["t", None])[0].replayed
    else:
        assert not charge(connection, job_type=job_type, key="t").replayed


def test_a_key_is_freed_only_if_its_run_does_not_exist(connection: PgConnection) -> None:
    first = charge(connection, job_type="live", key="t")
    fetch_all(connection, "INSERT INTO rowcall.request_keys VALUES ('t', 'cli', 4711, 'f'), ('u', 'app', 4711, 'f')")
    fetch_all(connection, FREE_KEYS, {"key_owner": "app", "keys": ["t"]})
    assert stored(connection) == [("t", "app", first.run_id), ("t", "cli", 4711), ("u", "app", 4711)]
    fetch_all(connection, FREE_KEYS, {"key_owner": "app", "keys": ["t", "u"]})
    assert stored(connection) == [("t", "app", first.run_id), ("t", "cli", 4711)]


def test_pruning_keeps_the_bare_row_of_a_run_with_such_a_key_and_expiring_deletes_both(
    connection: PgConnection,
) -> None:
    run_id = charge(connection, job_type="live").run_id
    assert charge(connection, job_type="live", key="t").replayed
    kept, other = charge(connection, 8, "live", key="u").run_id, ended(connection, Status.SUCCEEDED, "1 year")["id"]
    end(connection, run_id, Status.SUCCEEDED)
    long_ago(connection, run_id, "15 days")
    pruned = prune(connection)
    assert (pruned["made_bare"], pruned["deleted"]) == (1, 1)
    assert left(connection) == sorted({run_id, kept} - {other})
    assert charge(connection, job_type="live", key="t") == Enqueued(run_id, replayed=True)
    long_ago(connection, run_id, "366 days")
    assert expire(connection) == 1
    assert stored(connection) == [("u", "app", kept)]
    assert not charge(connection, job_type="live", key="t").replayed


def long_ago(connection: PgConnection, run_id: int, age: str) -> None:
    fetch_all(
        connection,
        f"UPDATE rowcall.job_runs SET created_at = now() - interval '{age}', finished_at = now() - interval '{age}'"
        f" WHERE id = {run_id}",
    )


def test_an_erased_run_keeps_its_keys(connection: PgConnection) -> None:
    run_id = charge(connection, job_type="live").run_id
    charge(connection, job_type="live", key="t")
    end(connection, run_id, Status.SUCCEEDED)
    erase(connection, [run_id], OPERATOR)
    assert charge(connection, job_type="live", key="t") == Enqueued(run_id, replayed=True)


def test_many_keys_of_one_call_are_remembered_each_for_its_run(connection: PgConnection) -> None:
    payloads = [{"invoice_id": number} for number in range(300)]
    first = enqueue_many(connection, "live", payloads)
    keys = [f"key {number}" for number in range(300)]
    for _ in range(2):
        outcomes = enqueue_many(connection, "live", payloads, keys=keys)
        assert [outcome.run_id for outcome in outcomes] == [outcome.run_id for outcome in first]
        fetch_all(connection, "UPDATE rowcall.job_runs SET status = 'succeeded', finished_at = now()")


def test_a_key_on_a_run_goes_before_one_that_is_remembered(connection: PgConnection) -> None:
    """Two requests with one key and different content, at the same moment: only one of them can be repeated."""
    first, second = charge(connection, 1, key="s"), charge(connection, 2, key="t")
    fetch_all(
        connection,
        "INSERT INTO rowcall.request_keys SELECT 't', 'app', id, request_fingerprint FROM rowcall.job_runs"
        f" WHERE id = {first.run_id}",
    )
    assert charge(connection, 2, key="t") == Enqueued(second.run_id, replayed=True)
    with pytest.raises(KeyTaken):
        charge(connection, 1, key="t")
