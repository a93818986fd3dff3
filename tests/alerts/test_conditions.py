"""Conditions: when each alert fires, and for what."""

from __future__ import annotations

from contextlib import closing

import pytest

from rowcall.alerts.conditions import CONDITIONS, Alert, Limits
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue import vacuum
from rowcall.status import Status
from tests.alerts.checking import LIMITS, die
from tests.support.rows import run_in

COUNTS = """
INSERT INTO rowcall.run_counts
VALUES (date_trunc('minute', now() - %(ago)s::interval), 'noop', 'w', %(good)s, %(bad)s, 0, 0, 0, 0, '{}', '{}')
"""


def subjects(connection: PgConnection, alert: Alert, limits: Limits = LIMITS) -> dict[str, object]:
    return {subject: dict(details) for subject, details in CONDITIONS[alert](connection, limits)}


def test_every_alert_has_a_condition_except_the_test() -> None:
    assert {*CONDITIONS} == {*Alert} - {Alert.TEST}


def test_on_a_quiet_database_no_alert_is_true(connection: PgConnection) -> None:
    assert {alert: subjects(connection, alert) for alert in CONDITIONS} == {alert: {} for alert in CONDITIONS}


def test_run_died_counts_the_dead_runs_of_the_last_hour_by_type_and_names_the_newest(connection: PgConnection) -> None:
    ids = [die(connection) for _ in range(7)]
    die(connection, ago="61 min")
    retried = die(connection)
    fetch_all(connection, "UPDATE rowcall.job_runs SET status = 'cancelled' WHERE id = %(id)s", {"id": retried})
    assert subjects(connection, Alert.RUN_DIED) == {"noop": {"runs": 7, "run_ids": ids[:1:-1]}}


def test_run_died_finds_deaths_among_very_many_failures(connection: PgConnection) -> None:
    died = die(connection, ago="10 min")
    run = run_in(connection, Status.FAILED)
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker)"
        " SELECT %(id)s, number, 1, 'fail', 'w' FROM generate_series(1, 25000) AS number",
        {"id": run["id"]},
    )
    assert subjects(connection, Alert.RUN_DIED) == {"noop": {"runs": 1, "run_ids": [died]}}


def test_messages_that_cannot_be_sent_are_not_told_by_messages(connection: PgConnection) -> None:
    die(connection, "send_incidents")
    assert subjects(connection, Alert.RUN_DIED) == {}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", (False, False)),
        ("INSERT INTO rowcall.queues (name, paused_at) VALUES ('mail', now())", (True, False)),
        ("INSERT INTO rowcall.queues (name, max_running) VALUES ('mail', 0)", (False, True)),
    ],
)
def test_run_overdue_names_the_longest_due_run_of_a_queue_also_if_the_queue_is_paused_or_closed(
    connection: PgConnection, settings: str, said: tuple[bool, bool]
) -> None:
    if settings:
        fetch_all(connection, settings)
    for queue, due in (("mail", "16 min"), ("mail", "20 min"), ("fast", "14 min")):
        run_in(connection, Status.QUEUED, queue=f"'{queue}'", run_at=f"now() - interval '{due}'")
    run_in(connection, Status.RUNNING, queue="'busy'", run_at="now() - interval '1 hour'")
    longest = run_in(connection, Status.FAILED, queue="'mail'", priority="5", run_at="now() - interval '30 min'")
    assert subjects(connection, Alert.RUN_OVERDUE) == {
        "mail": {
            "run_id": longest["id"],
            "job_type": "noop",
            "due_since": longest["run_at"].isoformat(),
            "paused": said[0],
            "closed": said[1],
            "handed_over": False,
        }
    }
    assert subjects(connection, Alert.RUN_OVERDUE, Limits(due=3600, silence=150)) == {}


def test_run_overdue_names_a_run_that_was_handed_over_and_that_no_consumer_begins(connection: PgConnection) -> None:
    for holder in ("consumer host:1:a", "celery mail shop.tasks.send"):
        run = run_in(connection, Status.RUNNING, locked_by=f"'{holder}'", run_at="now() - interval '20 min'")
    found = {"run_id": run["id"], "job_type": "noop", "due_since": run["run_at"].isoformat()}
    closed = {"paused": False, "closed": False}
    assert subjects(connection, Alert.RUN_OVERDUE) == {"default": {**found, **closed, "handed_over": True}}


def test_type_unserved_counts_due_and_abandoned_runs_of_a_type_that_no_live_worker_serves(
    connection: PgConnection,
) -> None:
    run_in(connection, Status.QUEUED, job_type="'letter'", run_at="now() - interval '3 min'")
    run_in(connection, Status.QUEUED, job_type="'letter'", queue="'mail'", run_at="now() - interval '3 min'")
    run_in(connection, Status.RUNNING, job_type="'letter'", locked_until="now() - interval '1 s'")
    assert subjects(connection, Alert.TYPE_UNSERVED) == {
        "letter": {"waiting": 2, "abandoned": 1, "queues": 2, "first_queues": ["default", "mail"]}
    }
    fetch_all(
        connection,
        "INSERT INTO rowcall.workers (id, hostname, pid, version, job_types, concurrency)"
        " VALUES ('w', 'h', 1, '1', '{letter}', 1)",
    )
    assert subjects(connection, Alert.TYPE_UNSERVED) == {}


@pytest.mark.parametrize(
    ("good", "bad", "ago", "true"),
    [(10, 10, "14 min", True), (11, 10, "1 min", False), (0, 9, "1 min", False), (0, 10, "16 min", False)],
)
def test_attempts_failing_is_true_if_ten_attempts_and_half_of_all_failed_within_fifteen_minutes(
    connection: PgConnection, good: int, bad: int, ago: str, true: bool
) -> None:
    fetch_all(connection, COUNTS, {"good": good, "bad": bad, "ago": ago})
    expected = {"noop": {"failed": bad, "ended": good + bad}} if true else {}
    assert subjects(connection, Alert.ATTEMPTS_FAILING) == expected


def test_messages_and_pings_that_fail_are_not_told(connection: PgConnection) -> None:
    fetch_all(connection, COUNTS, {"good": 0, "bad": 50, "ago": "1 min"})
    fetch_all(connection, "UPDATE rowcall.run_counts SET job_type = 'send_incidents'")
    assert subjects(connection, Alert.ATTEMPTS_FAILING) == {}


def test_effect_unknown_counts_by_kind(connection: PgConnection) -> None:
    run = run_in(connection, Status.DEAD)
    fetch_all(
        connection,
        "INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, state, content_hash, refusal)"
        " VALUES ('welcome:1', %(id)s, 1, 'unknown', repeat('0', 64), 'no answer')",
        {"id": run["id"]},
    )
    assert subjects(connection, Alert.EFFECT_UNKNOWN) == {"sent_emails": {"effects": 1}}


def test_tick_silent_is_true_if_the_last_tick_is_long_ago_although_there_are_schedules(
    connection: PgConnection,
) -> None:
    scheduled = (
        "INSERT INTO rowcall.job_definitions (name, job_type, schedule, next_run_at)"
        " VALUES ('nightly', 'noop', '@daily', now())"
    )
    ago = "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '151 s', worker = %(worker)s"
    fetch_all(connection, ago, {"worker": "w"})
    assert subjects(connection, Alert.TICK_SILENT) == {}
    fetch_all(connection, scheduled)
    assert [*subjects(connection, Alert.TICK_SILENT)] == [""]
    # Nobody has started a worker yet.
    fetch_all(connection, ago, {"worker": None})
    assert subjects(connection, Alert.TICK_SILENT) == {}


def test_table_bloated_is_true_of_the_table_that_vacuum_does_not_keep_up_with(fresh_url: str) -> None:
    lines = "INSERT INTO rowcall.run_logs SELECT 1, n, 1, n, now(), 'info', '' FROM generate_series(1, 50001) AS n"
    with database.transaction(fresh_url) as own:
        fetch_all(own, "ALTER TABLE rowcall.run_logs SET (autovacuum_enabled = false)")
        fetch_all(own, lines)
    with database.transaction(fresh_url) as own:
        fetch_all(own, "DELETE FROM rowcall.run_logs")
        fetch_all(own, "SELECT pg_stat_force_next_flush()")
    with database.transaction(fresh_url) as own:
        assert subjects(own, Alert.TABLE_BLOATED) == {"run_logs": {"dead": 50001, "live": 0}}


def test_vacuum_held_back_names_session_application_and_the_start_of_its_query(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "OLD", vacuum.OLD * 0)
    monkeypatch.setattr(vacuum.holding_back, "__defaults__", (vacuum.OLD, vacuum.OLD_XIDS))
    with closing(database.connect(fresh_url)) as holder, closing(database.connect(fresh_url)) as own:
        fetch_all(holder, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.commit()
        fetch_all(holder, "SET application_name = 'a report'")
        fetch_all(holder, "SELECT 1")
        pid = holder.get_backend_pid()
        [(subject, details)] = [
            one for one in subjects(own, Alert.VACUUM_HELD_BACK).items() if f"session {pid} " in one[0]
        ]
        assert "(a report)" in subject
        assert isinstance(details, dict)
        assert details["query_started_at"]
        assert details["remedy"] == f"`SELECT pg_terminate_backend({pid})` ends it"
