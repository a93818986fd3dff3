"""Pruning: what is deleted when, what is kept of it, and what is never touched."""

from __future__ import annotations

import pytest

from rowcall import effects, queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, Row, fetch_all, fetch_value
from rowcall.base.errors import KeyConflict, RunNotFound
from rowcall.job_types.housekeeping import KeptDays
from rowcall.queue.retention.prune import BEGINNING, Retention, prune_page, read_page
from rowcall.queue.retention.walk import PruneOptions, prune_runs
from rowcall.status import FINAL, LIVE, Status
from tests.support.housekeeping import (
    OLD_ONES,
    TYPES,
    Rehearsal,
    ended,
    expire,
    left,
    occurrences,
    prune,
)
from tests.support.rows import row_of, run_in
from tests.support.run_log import insert_lines, texts

OPERATOR = Operator("a test")

# Within one transaction now() does not change, so that a test can meet the exact end of a retention time.
DEFAULT_DAYS = [(Status.SUCCEEDED, 14), (Status.CANCELLED, 30), (Status.DEAD, 90)]


@pytest.mark.parametrize(("status", "days"), DEFAULT_DAYS)
def test_each_status_is_kept_for_its_days_and_not_longer(connection: PgConnection, status: Status, days: int) -> None:
    kept = ended(connection, status, f"{days} days")
    ended(connection, status, f"{days} days 1 microsecond")
    assert prune(connection)["deleted"] == 1
    assert left(connection) == [kept["id"]]


def test_every_status_that_is_final_has_its_days() -> None:
    assert set(KeptDays().fields) == set(FINAL)


def test_one_types_days_are_shorter_or_longer_than_those_of_the_others(connection: PgConnection) -> None:
    ended(connection, Status.SUCCEEDED, "2 days", job_type="'gone_since'")
    kept = [
        ended(connection, Status.SUCCEEDED, "2 days"),
        ended(connection, Status.DEAD, "2 days", job_type="'gone_since'"),
        ended(connection, Status.SUCCEEDED, "99 days", job_type="'charge_invoice'"),
    ]
    types = {"gone_since": {"succeeded": 1.5}, "charge_invoice": {"succeeded": 100}}
    assert prune(connection, types=types)["deleted"] == 1
    assert left(connection) == [row["id"] for row in kept]


@pytest.mark.parametrize("status", LIVE)
def test_a_live_run_is_untouched_however_old_it_is(connection: PgConnection, status: Status) -> None:
    live = run_in(connection, status, created_at="now() - interval '10 years'", idempotency_key="'old'")
    assert prune(connection) == {
        "looked_at": 1,
        "deleted": 0,
        "made_bare": 0,
        "archived": 0,
        "months_dropped": 0,
        "occurrences": 0,
    }
    assert row_of(connection, live["id"]) == live


def attempt_of(connection: PgConnection, run: Row, lease_no: int = 1) -> None:
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, error)"
        " VALUES (%(run_id)s, %(lease_no)s, 1, 'fail', 'worker-1', 'it broke')",
        {"run_id": run["id"], "lease_no": lease_no},
    )
    insert_lines(connection, run["id"], [lease_no])


DETAILS = {
    "payload": "'{\"order_id\": 1}'",
    "result": "'{}'",
    "progress": "'{\"share\": 1}'",
    "last_error": "'it broke'",
    "last_stack": "'Traceback'",
    "trace_parent": "'00-1'",
}
ABOUT = {
    "idempotency_key": "'order:1'",
    "request_fingerprint": "'abc'",
    "error_type": "'ValueError'",
    "failed_at": "now() - interval '1 year'",
    "started_at": "now() - interval '1 year'",
    "created_by": "'a test'",
}


def test_a_run_without_a_key_goes_with_its_attempts_and_its_log(connection: PgConnection) -> None:
    run = ended(connection, Status.DEAD, "1 year")
    attempt_of(connection, run)
    assert prune(connection)["deleted"] == 1
    with pytest.raises(RunNotFound):
        queue.get_run(connection, run["id"])
    assert (queue.attempts_of(connection, run["id"]), texts(connection, run["id"])) == ([], [])


def test_of_a_run_with_a_key_stays_what_a_replay_needs_and_how_it_ended(connection: PgConnection) -> None:
    run = ended(connection, Status.DEAD, "1 year", **DETAILS, **ABOUT)
    attempt_of(connection, run)
    assert prune(connection)["made_bare"] == 1
    now = fetch_value(connection, "SELECT now()")
    gone = {**dict.fromkeys(DETAILS), "payload": {}, "pruned_at": now, "updated_at": now}
    assert row_of(connection, run["id"]) == {**run, **gone}
    assert (queue.attempts_of(connection, run["id"]), texts(connection, run["id"])) == ([], [])


def test_what_was_pruned_is_not_pruned_again(connection: PgConnection) -> None:
    run = ended(connection, Status.DEAD, "1 year", **ABOUT, pruned_at="now() - interval '1 month'")
    assert prune(connection) == {
        "looked_at": 1,
        "deleted": 0,
        "made_bare": 0,
        "archived": 0,
        "months_dropped": 0,
        "occurrences": 0,
    }
    assert row_of(connection, run["id"]) == run


def test_runs_beside_those_that_are_due_stay_as_they_are(connection: PgConnection) -> None:
    beside = [ended(connection, Status.SUCCEEDED, "1 day"), run_in(connection, Status.FAILED)]
    attempt_of(connection, beside[1])
    ended(connection, Status.SUCCEEDED, "1 year")
    ended(connection, Status.SUCCEEDED, "1 year", **ABOUT)
    prune(connection)
    assert [row_of(connection, row["id"]) for row in beside] == beside
    assert (len(queue.attempts_of(connection, beside[1]["id"])), texts(connection, beside[1]["id"])) == (1, ["line 1"])


# Keys


def asked(connection: PgConnection, number: int = 1) -> queue.Enqueued:
    """Enqueue under one key; `number` varies the content."""
    return queue.enqueue(connection, "noop", {"number": number}, key="order:1")


def pruned_long_ago(connection: PgConnection, ago: str = "100 days") -> int:
    """Insert a pruned run with that key, which ended this long ago, and return its id."""
    run_id = asked(connection).run_id
    moment = f"now() - interval '{ago}'"
    fetch_all(
        connection,
        f"UPDATE rowcall.job_runs SET status = 'dead', created_at = {moment}, finished_at = {moment}"
        f" WHERE id = {run_id}",
    )
    prune(connection, keep_days={"dead": 1})
    assert row_of(connection, run_id)["pruned_at"]
    return run_id


def test_the_same_request_after_pruning_is_a_replay_still(connection: PgConnection) -> None:
    run_id = pruned_long_ago(connection)
    assert asked(connection) == queue.Enqueued(run_id, replayed=True)


def test_another_request_under_the_key_of_a_pruned_run_is_a_conflict_still(connection: PgConnection) -> None:
    run_id = pruned_long_ago(connection)
    with pytest.raises(KeyConflict, match=f"belongs to run {run_id}"):
        asked(connection, number=2)


def test_a_key_whose_time_is_over_is_free_again(connection: PgConnection) -> None:
    run_id = pruned_long_ago(connection, "365 days")
    assert expire(connection) == 0
    assert expire(connection, keep_days=364) == 1
    again = asked(connection, number=2)
    assert (again.replayed, again.run_id > run_id) == (False, True)


def test_keys_of_one_type_may_be_kept_for_another_time(connection: PgConnection) -> None:
    run_id = pruned_long_ago(connection)
    assert expire(connection, keep_days=99, types={"noop": 101}) == 0
    assert expire(connection, types={"another": 1}) == 0
    assert left(connection) == [run_id]
    assert expire(connection, types={"noop": 99}) == 1


def test_a_key_never_goes_before_the_details_of_its_run(connection: PgConnection) -> None:
    run = ended(connection, Status.DEAD, "50 days", **ABOUT)
    assert expire(connection, keep_days=1) == 0
    prune(connection)
    assert expire(connection, keep_days=1) == 0
    assert left(connection) == [run["id"]]
    prune(connection, keep_days={"dead": 49})
    assert expire(connection, keep_days=1) == 1


def test_effects_outlive_their_run(connection: PgConnection) -> None:
    run = ended(connection, Status.SUCCEEDED, "1 year")
    fetch_all(
        connection,
        "INSERT INTO rowcall.payments (idempotency_key, run_id, lease_no, content_hash, state)"
        f" VALUES ('invoice_charge:1', {run['id']}, 1, '', 'unknown')",
    )
    assert prune(connection)["deleted"] == 1
    [effect] = effects.effects_of(connection, run["id"])
    assert [one["id"] for one in effects.list_effects(connection, "payments", ["unknown"])] == [effect["id"]]
    assert effects.resolve(connection, "payments", effect["id"], True, OPERATOR, "ch_1")["state"] == "applied"


# Pages


WEEK = Retention(dict.fromkeys(FINAL, 7), {})


def test_what_somebody_holds_is_left_to_the_next_walk(fresh_url: str) -> None:
    with database.transaction(fresh_url) as making:
        held, _ = (ended(making, Status.DEAD, "1 year") for _ in range(2))
    with database.transaction(fresh_url) as operator, database.transaction(fresh_url) as pruning:
        fetch_all(pruning, "SET LOCAL lock_timeout = '1ms'")
        fetch_all(operator, f"SELECT FROM rowcall.job_runs WHERE id = {held['id']} FOR SHARE")
        assert prune(pruning)["deleted"] == 1
    with database.transaction(fresh_url) as pruning:
        assert left(pruning) == [held["id"]]
        assert prune(pruning)["deleted"] == 1


def test_two_walks_at_once_take_different_runs_and_wait_for_none(fresh_url: str) -> None:
    with database.transaction(fresh_url) as making:
        for number in range(4):
            ended(making, Status.DEAD, f"{100 + number} days")
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        fetch_all(other, "SET LOCAL lock_timeout = '1ms'")
        page = read_page(one, WEEK, BEGINNING, 3, bare=False)
        assert page
        assert prune_page(one, page)["deleted"] == 3
        assert prune(other)["deleted"] == 1


REVIVED = [
    "UPDATE rowcall.job_runs SET status = 'queued', finished_at = NULL, updated_at = now()",
    # By hand, without updated_at.
    "UPDATE rowcall.job_runs SET status = 'queued', finished_at = NULL",
    # By another walk, at the same time.
    "UPDATE rowcall.job_runs SET pruned_at = now(), updated_at = now()",
]


@pytest.mark.parametrize("change", REVIVED)
@pytest.mark.parametrize("key", ["NULL", "'order:1'"])
def test_what_changes_after_it_was_looked_at_is_left_alone(connection: PgConnection, change: str, key: str) -> None:
    run = ended(connection, Status.DEAD, "1 year", idempotency_key=key)
    page = read_page(connection, WEEK, BEGINNING, 10, bare=False)
    assert page
    assert page.due == [run["id"]]
    fetch_all(connection, change)
    changed = row_of(connection, run["id"])
    assert prune_page(connection, page) == {"deleted": 0, "made_bare": 0}
    assert row_of(connection, run["id"]) == changed


def test_a_dry_walk_counts_what_a_real_one_takes_and_changes_nothing(connection: PgConnection) -> None:
    for key in ("NULL", "'one'", "NULL", "'two'", "NULL"):
        ended(connection, Status.DEAD, "1 year", idempotency_key=key)
    occurrences(connection, *OLD_ONES)
    rows = fetch_all(connection, "SELECT * FROM rowcall.job_runs ORDER BY id")
    for batch in (2, 3, 5):
        policy = TYPES["prune_runs"].checked({"batch": batch})
        steps = Rehearsal(connection)
        *_, last = prune_runs(policy, PruneOptions(steps, dry=True))
        counted = dict(last.counts)
        assert steps.saved == []
    assert fetch_all(connection, "SELECT * FROM rowcall.job_runs ORDER BY id") == rows
    assert counted == {
        "looked_at": 5,
        "deleted": 3,
        "made_bare": 2,
        "archived": 0,
        "months_dropped": 0,
        "occurrences": 3,
    }
    assert prune(connection, batch=2) == counted
