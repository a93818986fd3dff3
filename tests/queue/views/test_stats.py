"""Statistics: what is counted, where counting stops, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.queue.operate import retry
from rowcall.queue.queues import limit_queue, pause_queue
from rowcall.queue.views.stats import dead_lately, figures, longest_due
from rowcall.queue.workers import Registration, register, stopped
from rowcall.status import FAILURES, Event, Status
from tests.support.rows import run_in

OPERATOR = Operator("a test")
LATER = "now() + interval '1 hour'"


def queue_of(connection: PgConnection, name: str = "default") -> Row:
    told: list[Row] = figures(connection, [], {}, 30)["queues"]
    [row] = [row for row in told if row["name"] == name]
    return row


def counts(row: Row) -> tuple[int, int, int, int]:
    return row["due"], row["queued"], row["running"], row["failed"]


def fill(connection: PgConnection, status: Status, many: int) -> None:
    running = status is Status.RUNNING
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_runs (job_type, status, run_at, locked_by, locked_until, attempts)"
        " SELECT 'noop', %(status)s, now() - number * interval '1 second', %(worker)s,"
        " now() + %(lease)s * interval '1 second', 1 FROM generate_series(1, %(many)s) AS number",
        {
            "status": status,
            "worker": "w" if running else None,
            "lease": 60 if running else None,
            "many": many,
        },
    )


def test_live_runs_are_counted_by_queue_and_status_and_those_that_could_be_claimed_now(
    connection: PgConnection,
) -> None:
    for status in Status:
        run_in(connection, status)
    run_in(connection, Status.QUEUED, run_at=LATER)
    run_in(connection, Status.FAILED, run_at=LATER)
    run_in(connection, Status.QUEUED, priority="-5")
    run_in(connection, Status.QUEUED, queue="'mail'")
    assert counts(queue_of(connection)) == (3, 3, 1, 2)
    assert counts(queue_of(connection, "mail")) == (1, 1, 0, 0)


def test_the_age_of_the_longest_due_run_is_told_by_the_databases_clock(connection: PgConnection) -> None:
    run_in(connection, Status.RUNNING, run_at="now() - interval '9 hours'")
    run_in(connection, Status.QUEUED, run_at=LATER)
    assert queue_of(connection)["oldest_due_age_seconds"] == 0
    run_in(connection, Status.FAILED, run_at="now() - interval '2 hours'", priority="3")
    run_in(connection, Status.QUEUED, run_at="now() - interval '1 hour'")
    assert queue_of(connection)["oldest_due_age_seconds"] == 7200


def test_a_run_that_was_handed_over_is_running_and_as_late_as_before(connection: PgConnection) -> None:
    message, consumer = "'celery mail shop.tasks.send'", "'consumer host:1:a'"
    run_in(connection, Status.RUNNING, locked_by=consumer, run_at="now() - interval '9 hours'")
    waits = run_in(connection, Status.RUNNING, locked_by=message, run_at="now() - interval '1 hour'")
    told = queue_of(connection)
    assert (told["due"], told["running"], told["handed_over"], told["oldest_due_age_seconds"]) == (0, 2, 1, 3600)
    found = longest_due(connection, "default")
    assert found is not None
    assert found["id"] == waits["id"]


def test_a_queue_is_told_of_for_its_runs_its_rule_or_because_it_is_known(connection: PgConnection) -> None:
    run_in(connection, Status.SUCCEEDED, queue="'past'")
    run_in(connection, Status.QUEUED, queue="'busy'")
    pause_queue(connection, "stopped", OPERATOR)
    limit_queue(connection, "narrow", 3, OPERATOR)
    told = {row["name"]: row for row in figures(connection, ["known", "busy"], {"known": 2, "narrow": 5}, 30)["queues"]}
    assert sorted(told) == ["busy", "known", "narrow", "stopped"]
    assert {name: row["max_running"] for name, row in told.items()} == {
        "busy": None,
        "known": 2,
        "narrow": 3,
        "stopped": None,
    }
    assert [name for name, row in told.items() if row["paused_at"]] == ["stopped"]
    assert counts(told["known"]) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (Status.QUEUED, (1000, 1000, 0, 0)),
        (Status.RUNNING, (0, 0, 1000, 0)),
        (Status.FAILED, (1000, 0, 0, 1000)),
    ],
)
def test_counting_stops_at_a_thousand(
    connection: PgConnection, status: Status, told: tuple[int, int, int, int]
) -> None:
    fill(connection, status, 1001)
    assert counts(queue_of(connection)) == told


def test_what_is_due_is_seen_behind_any_number_that_runs(connection: PgConnection) -> None:
    fill(connection, Status.RUNNING, 2500)
    run_in(connection, Status.QUEUED, run_at="now()")
    assert counts(queue_of(connection)) == (1, 1, 1000, 0)


def ended(connection: PgConnection, event: Event, ago: str, lease_no: int) -> None:
    run = run_in(connection, Status.QUEUED)
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, ended_at)"
        f" VALUES (%(run_id)s, %(lease_no)s, 1, %(outcome)s, 'w', now() - interval '{ago}')",
        {"run_id": run["id"], "lease_no": lease_no, "outcome": event},
    )


def test_attempts_that_failed_within_the_hour_are_counted(connection: PgConnection) -> None:
    for event in (*FAILURES, Event.RELEASE, Event.SNOOZE, Event.CANCELLED, Event.FORCE_CANCEL):
        ended(connection, event, "59 minutes", 1)
        ended(connection, event, "61 minutes", 2)
    assert figures(connection, [], {}, 30)["attempts_failed_last_hour"] == len(FAILURES)


def test_runs_that_died_within_a_day_are_counted_until_they_are_retried(connection: PgConnection) -> None:
    for ago in ("23 hours", "25 hours"):
        ended(connection, Event.GIVE_UP, ago, 1)
    ended(connection, Event.FAIL, "1 hour", 1)
    fetch_all(
        connection,
        "UPDATE rowcall.job_runs SET status = 'dead', finished_at = now(), failed_at = now() WHERE id IN"
        " (SELECT run_id FROM rowcall.job_attempts WHERE outcome = 'give up')",
    )
    assert dead_lately(connection) == [{"job_type": "noop", "runs": 1}]
    assert figures(connection, [], {}, 30)["runs_dead_last_day"] == 1
    for row in fetch_all(connection, "SELECT id FROM rowcall.job_runs WHERE status = 'dead'"):
        retry(connection, row["id"], Operator("a test"))
    assert figures(connection, [], {}, 30)["runs_dead_last_day"] == 0


def test_a_worker_is_alive_that_was_heard_of_and_has_not_stopped(connection: PgConnection) -> None:
    for name in ("here", "gone", "silent"):
        register(connection, Registration(name, "host", 1, "1", None, ["noop"], 1))
    stopped(connection, "gone")
    fetch_all(connection, "UPDATE rowcall.workers SET heartbeat_at = now() - interval '31 seconds' WHERE id = 'silent'")
    assert figures(connection, [], {}, 12)["workers_alive"] == 1
    assert figures(connection, [], {}, 13)["workers_alive"] == 2


def test_definitions_are_counted_that_are_paused_and_that_no_tick_decides(connection: PgConnection) -> None:
    states: list[dict[str, Any]] = [
        {"paused_at": "now()", "next_run_at": LATER},
        {"paused_at": "NULL", "next_run_at": "now() - interval '140 seconds'"},
        {"paused_at": "NULL", "next_run_at": "now() - interval '160 seconds'"},
        {"paused_at": "NULL", "next_run_at": "NULL"},
    ]
    for number, state in enumerate(states):
        fetch_all(
            connection,
            "INSERT INTO rowcall.job_definitions (name, job_type, paused_at, next_run_at)"
            f" VALUES ('d{number}', 'noop', {state['paused_at']}, {state['next_run_at']})",
        )
    assert figures(connection, [], {}, 30)["definitions"] == {"paused": 1, "overdue": 1}


def test_a_dead_run_is_counted_behind_thousands_of_attempts_that_are_made_again(connection: PgConnection) -> None:
    ended(connection, Event.GIVE_UP, "2 hours", 1)
    fetch_all(connection, "UPDATE rowcall.job_runs SET status = 'dead', finished_at = now(), failed_at = now()")
    run = run_in(connection, Status.QUEUED)
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, ended_at)"
        " SELECT %(run_id)s, number, 1, 'fail', 'w', now() - interval '1 hour' FROM generate_series(1, 2000) AS number",
        {"run_id": run["id"]},
    )
    assert figures(connection, [], {}, 30)["runs_dead_last_day"] == 1
