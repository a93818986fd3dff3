"""Every event in every status, in the database: the allowed ones happen, and the others change nothing."""

from __future__ import annotations

from itertools import product

import pytest

from rowcall import queue
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import RunPruned, TransitionRefused
from rowcall.base.errors.sentences import has_status
from rowcall.queue import Lease, LeaseRenewal
from rowcall.status import BY_EVENT, FINAL, LIVE, TRANSITIONS, Event, Status, Who, allowed
from tests.queue.database.acts import (
    ACTS,
    OPERATOR,
    Act,
    attempt,
    lease_of,
    ready,
    steered,
)
from tests.support.rows import WORKER, row_of, run_in


def test_every_event_of_the_machine_is_walked() -> None:
    assert set(ACTS) == set(Event) - {Event.ENQUEUE}
    assert {transition.event for transition in TRANSITIONS} == set(Event)


@pytest.mark.parametrize(
    ("event", "status"), [pair for pair in product(ACTS, Status) if pair[1] in BY_EVENT[pair[0]].sources]
)
def test_a_legal_event_leads_where_the_table_says(connection: PgConnection, event: Event, status: Status) -> None:
    run = run_in(connection, status, **ready(event, status))
    assert attempt(connection, event, run)
    assert row_of(connection, run["id"])["status"] in BY_EVENT[event].targets


@pytest.mark.parametrize(
    ("event", "status"), [pair for pair in product(ACTS, Status) if pair[1] not in BY_EVENT[pair[0]].sources]
)
def test_an_illegal_event_changes_nothing(connection: PgConnection, event: Event, status: Status) -> None:
    run = run_in(connection, status, **ready(event, status))
    assert not attempt(connection, event, run)
    assert row_of(connection, run["id"]) == run


OWNERS_EVENTS = [transition.event for transition in TRANSITIONS if transition.who is Who.OWNER]


@pytest.mark.parametrize("event", OWNERS_EVENTS)
@pytest.mark.parametrize(
    "taken", [{"lease_no": "4"}, {"locked_by": "'worker-2'"}], ids=["another lease", "another worker"]
)
def test_only_the_owner_of_the_very_lease_can_write(
    connection: PgConnection, event: Event, taken: dict[str, str]
) -> None:
    run = run_in(connection, Status.RUNNING, **ready(event, Status.RUNNING), **taken)
    stale = {**run, "lease_no": 3}
    assert not attempt(connection, event, stale)
    assert row_of(connection, run["id"]) == run


@pytest.mark.parametrize("event", [event for event in ACTS if event is not Event.CLAIM])
def test_an_event_happens_to_one_run_and_leaves_its_like_alone(connection: PgConnection, event: Event) -> None:
    status = BY_EVENT[event].sources[0]
    run, alike = (run_in(connection, status, **ready(event, status)) for _ in range(2))
    assert attempt(connection, event, run)
    assert row_of(connection, alike["id"]) == alike


@pytest.mark.parametrize("worker", [WORKER, "worker-2"])
@pytest.mark.parametrize("lease_no", [3, 2])
def test_only_the_owner_of_the_very_lease_can_save_for_the_next_attempt(
    connection: PgConnection, worker: str, lease_no: int
) -> None:
    run, alike = (run_in(connection, Status.RUNNING) for _ in range(2))
    kept = queue.save(connection, Lease(worker, run["id"], lease_no), "7")
    saved = {"saved": 7} if (worker, lease_no) == (WORKER, 3) else None
    assert (row_of(connection, run["id"])["progress"], kept) == (saved, saved is not None)
    assert row_of(connection, alike["id"]) == alike


@pytest.mark.parametrize("event", [Event.FORCE_CANCEL, Event.EXPIRE])
def test_a_lease_that_was_not_seen_is_spared(connection: PgConnection, event: Event) -> None:
    run = run_in(connection, Status.RUNNING, **ready(event, Status.RUNNING))
    assert not attempt(connection, event, {**run, "lease_no": run["lease_no"] - 1})
    assert row_of(connection, run["id"]) == run


def test_a_lease_that_still_runs_is_not_swept(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING)
    assert not attempt(connection, Event.EXPIRE, run)
    assert not attempt(connection, Event.CLAIM, run)
    assert row_of(connection, run["id"]) == run


LAST = {"attempts": "5", "max_attempts": "5"}


@pytest.mark.parametrize(
    ("event", "columns", "target"),
    [
        (Event.EXPIRE, {}, Status.FAILED),
        (Event.EXPIRE, LAST, Status.DEAD),
        (Event.EXPIRE, {"cancel_requested_at": "now()"}, Status.CANCELLED),
        (Event.EXPIRE, {**LAST, "cancel_requested_at": "now()"}, Status.CANCELLED),
        (Event.RELEASE, {}, Status.QUEUED),
        (Event.RELEASE, LAST, Status.DEAD),
        *(
            (event, {**attempts, "cancel_requested_at": "now()"}, Status.CANCELLED)
            for event in (Event.FAIL, Event.GIVE_UP, Event.RELEASE, Event.SNOOZE, Event.UNCLAIM)
            for attempts in ({}, LAST)
            if (event, attempts) != (Event.FAIL, LAST)
        ),
    ],
)
def test_where_an_event_leads_depends_on_attempts_left_and_cancelling(
    connection: PgConnection, event: Event, columns: dict[str, str], target: Status
) -> None:
    run = run_in(connection, Status.RUNNING, **ready(event, Status.RUNNING) | columns)
    assert attempt(connection, event, run)
    assert row_of(connection, run["id"])["status"] == target


def test_the_last_attempt_cannot_end_in_failed(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, **LAST)
    assert not attempt(connection, Event.FAIL, run)
    assert row_of(connection, run["id"]) == run


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (Event.FAIL, ("it broke", "ValueError")),
        (Event.GIVE_UP, ("it broke", "ValueError")),
        (Event.RELEASE, ("stopping", "Released")),
        (Event.EXPIRE, ("the lease of worker-1 expired: the worker died, froze, or lost the database", "LeaseExpired")),
    ],
)
def test_the_latest_error_is_shown(connection: PgConnection, event: Event, error: tuple[str, str]) -> None:
    run = run_in(connection, Status.RUNNING, **ready(event, Status.RUNNING))
    assert attempt(connection, event, run)
    now = row_of(connection, run["id"])
    assert (now["last_error"], now["error_type"], now["failed_at"]) == (*error, now["updated_at"])


@pytest.mark.parametrize(("event", "seconds"), [(Event.FAIL, 30), (Event.EXPIRE, 0), (Event.RUN_NOW, 0)])
def test_when_a_run_is_due_again(connection: PgConnection, event: Event, seconds: int) -> None:
    status = BY_EVENT[event].sources[0]
    run = run_in(connection, status, **ready(event, status))
    assert attempt(connection, event, run)
    now = row_of(connection, run["id"])
    assert (now["run_at"] - now["updated_at"]).total_seconds() == seconds


def test_a_result_is_kept(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING)
    assert attempt(connection, Event.SUCCEED, run)
    assert row_of(connection, run["id"])["result"] == {"done": 1}


def test_cancelled_needs_that_cancelling_was_asked_for(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING)
    assert not attempt(connection, Event.CANCELLED, run)
    assert row_of(connection, run["id"]) == run


def test_a_heartbeat_extends_a_lease_and_never_shortens_it(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING, locked_until="now() + interval '10 seconds'")
    queue.heartbeat(connection, {lease_of(run): 60})
    extended = row_of(connection, run["id"])["locked_until"]
    assert (extended - run["locked_until"]).total_seconds() == 50
    queue.heartbeat(connection, {lease_of(run): 5})
    assert row_of(connection, run["id"])["locked_until"] == extended


def test_a_heartbeat_tells_the_owner_that_cancelling_was_asked_for(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING)
    assert queue.heartbeat(connection, {lease_of(run): 60}) == {
        lease_of(run): LeaseRenewal(True, cancel_requested=False)
    }
    queue.ask_to_cancel(connection, run["id"], OPERATOR)
    assert queue.heartbeat(connection, {lease_of(run): 60}) == {
        lease_of(run): LeaseRenewal(True, cancel_requested=True)
    }


def test_a_retry_forgets_attempts_and_error_but_never_the_lease_number(connection: PgConnection) -> None:
    run = run_in(
        connection,
        Status.DEAD,
        last_error="'it broke'",
        error_type="'ValueError'",
        failed_at="now()",
        last_stack="'Traceback'",
        progress="'{}'",
        cancel_requested_at="now()",
    )
    now = queue.retry(connection, run["id"], OPERATOR)
    forgotten = ("last_error", "error_type", "failed_at", "last_stack", "progress", "cancel_requested_at")
    assert [now[name] for name in forgotten] == [None] * len(forgotten)
    assert (now["attempts"], now["lease_no"], now["run_at"]) == (0, run["lease_no"], now["updated_at"])


@pytest.mark.parametrize("event", [Event.ASK_TO_CANCEL, Event.FORCE_CANCEL])
def test_when_cancelling_was_first_asked_for_is_kept(connection: PgConnection, event: Event) -> None:
    run = run_in(connection, Status.RUNNING, cancel_requested_at="now() - interval '1 minute'")
    assert attempt(connection, event, run)
    assert row_of(connection, run["id"])["cancel_requested_at"] == run["cancel_requested_at"]


@pytest.mark.parametrize(
    "event",
    [Event.FAIL, Event.GIVE_UP, Event.RELEASE, Event.SNOOZE, Event.EXPIRE, Event.CANCELLED, Event.FORCE_CANCEL],
)
def test_an_attempt_that_did_not_succeed_is_kept_under_its_lease(connection: PgConnection, event: Event) -> None:
    run = run_in(connection, Status.RUNNING, **ready(event, Status.RUNNING))
    assert attempt(connection, event, run)
    [kept] = queue.attempts_of(connection, run["id"])
    assert (kept["lease_no"], kept["attempt"], kept["outcome"], kept["worker"]) == (3, 2, event, WORKER)


def test_an_unclaimed_run_is_as_if_it_had_not_been_claimed_but_for_the_lease_number(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING)
    assert attempt(connection, Event.UNCLAIM, run)
    now = row_of(connection, run["id"])
    assert (now["attempts"], now["run_at"], now["lease_no"]) == (run["attempts"] - 1, run["run_at"], run["lease_no"])
    assert queue.attempts_of(connection, run["id"]) == []


def test_success_leaves_no_history_behind(connection: PgConnection) -> None:
    run = run_in(connection, Status.RUNNING)
    assert attempt(connection, Event.SUCCEED, run)
    assert queue.attempts_of(connection, run["id"]) == []


@pytest.mark.parametrize("event", [transition.event for transition in TRANSITIONS if transition.who is Who.OPERATOR])
def test_what_an_operator_does_is_audited_with_before_and_after(connection: PgConnection, event: Event) -> None:
    run = run_in(connection, BY_EVENT[event].sources[0])
    assert attempt(connection, event, run)
    audited = fetch_all(
        connection, "SELECT * FROM rowcall.audit_log WHERE subject = 'run' AND subject_id = %(id)s", {"id": run["id"]}
    )
    assert [(row["who"], row["action"], row["before"]["status"]) for row in audited] == [
        ("a test", event, run["status"])
    ]
    assert audited[0]["after"]["status"] == row_of(connection, run["id"])["status"]


def test_live_and_final_are_all_statuses_and_nothing_leaves_a_final_one_but_a_retry() -> None:
    assert {*LIVE, *FINAL} == set(Status)
    for status in FINAL:
        assert set(allowed(status)) <= {Event.RETRY}


@pytest.mark.parametrize("status", Status)
def test_a_refused_operator_is_told_the_status_and_what_it_allows(connection: PgConnection, status: Status) -> None:
    run = run_in(connection, status)
    refused = next(t.event for t in TRANSITIONS if t.who is Who.OPERATOR and status not in t.sources)
    with pytest.raises(TransitionRefused) as refusal:
        ACTS[refused](connection, run)
    assert (refusal.value.status, refusal.value.allowed) == (status, allowed(status, Who.OPERATOR))
    assert f"run {run['id']} {has_status(status)}" in str(refusal.value)


@pytest.mark.parametrize("act", [ACTS[Event.RETRY], ACTS[Event.RUN_NOW], ACTS[Event.CANCEL], steered(queue.clone)])
@pytest.mark.parametrize("status", FINAL)
def test_a_pruned_run_cannot_be_done_again_and_the_refusal_says_what_can(
    connection: PgConnection, act: Act, status: Status
) -> None:
    run = run_in(connection, status, pruned_at="'2026-03-29 12:00+00'")
    with pytest.raises(
        RunPruned,
        match=f"run {run['id']} {has_status(status)} .its payload was pruned on 2026-03-29.: .* is not allowed;"
        " allowed: enqueuing a new run with its payload .if you still have it. and with another key or none",
    ):
        act(connection, run)
    assert fetch_all(connection, "SELECT * FROM rowcall.job_runs") == [run]
