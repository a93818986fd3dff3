"""Incidents: receivers are told once when an alert begins and once when it has ended, whoever checks."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace

import pytest

from rowcall.alerts import begin_test, list_incidents
from rowcall.base import database
from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.job_types import JobType
from rowcall.job_types.builtin import AnyPayload
from rowcall.queue.retention.prune import delete_incidents
from tests.alerts.checking import CHAT, LIMITS, OPS, check, die, known, messages, open_now, pass_time, watch


def test_an_alert_is_told_once_while_it_lasts_and_once_when_it_has_been_over_for_five_minutes(
    connection: PgConnection,
) -> None:
    run = die(connection)
    [begun] = check(connection)
    [incident] = list_incidents(connection, 10)
    assert begun == {"to": "ops@example.com", "opened": [incident["id"]], "ended": []}
    for _ in range(3):
        pass_time(connection, "31 s")
        assert check(connection) == []
    retried = "UPDATE rowcall.job_runs SET status = 'queued', finished_at = NULL WHERE id = %(id)s"
    fetch_all(connection, retried, {"id": run})
    pass_time(connection, "4 min")
    assert check(connection) == []
    pass_time(connection, "61 s")
    assert check(connection) == [{"to": "ops@example.com", "opened": [], "ended": [incident["id"]]}]
    pass_time(connection, "1 h")
    assert check(connection) == []
    assert open_now(connection) == []


def test_an_alert_that_comes_and_goes_is_one_incident(connection: PgConnection) -> None:
    die(connection)
    assert len(check(connection)) == 1
    for status in ("cancelled", "dead", "cancelled", "dead"):
        fetch_all(connection, f"UPDATE rowcall.job_runs SET status = '{status}' WHERE job_type = 'noop'")
        pass_time(connection, "2 min")
        assert check(connection) == []
    assert open_now(connection) == [("run_died", "noop")]


def test_nobody_checks_again_before_thirty_seconds_have_passed(connection: PgConnection) -> None:
    assert check(connection) == []
    die(connection)
    pass_time(connection, "29 s")
    assert check(connection) == []
    pass_time(connection, "2 s")
    assert len(check(connection)) == 1


def test_an_alert_that_is_true_after_a_long_time_without_checks_goes_on(connection: PgConnection) -> None:
    die(connection)
    check(connection)
    pass_time(connection, "20 min")
    assert check(connection) == []
    assert open_now(connection) == [("run_died", "noop")]


def test_a_worker_ends_no_incident_of_an_alert_that_it_does_not_check(connection: PgConnection) -> None:
    overdue = "INSERT INTO rowcall.job_runs (job_type, run_at) VALUES ('bill', now() - interval '1 hour')"
    fetch_all(connection, overdue)
    check(connection)
    before = open_now(connection)
    # The second alert has the subject of the one that the worker checks.
    assert before == [("run_overdue", "default"), ("type_unserved", "bill")]
    billing = JobType("bill", schema=AnyPayload, on_dead="billing@example.com")
    pass_time(connection, "6 min")
    assert check(connection, (), known(billing)) == []
    assert open_now(connection) == before


def test_ten_thousand_dead_runs_of_many_types_are_one_message_for_each_receiver(connection: PgConnection) -> None:
    for job_type in ("noop", "letter", "invoice"):
        fetch_all(
            connection,
            "WITH died AS (INSERT INTO rowcall.job_runs (job_type, status, attempts, lease_no, finished_at, failed_at)"
            " SELECT %(type)s, 'dead', 1, 1, now(), now() FROM generate_series(1, 3400) RETURNING id)"
            " INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker)"
            " SELECT id, 1, 1, 'give up', 'w' FROM died",
            {"type": job_type},
        )
    told = check(connection, (OPS, CHAT))
    assert sorted(message["to"] for message in told) == sorted([CHAT.label, OPS.label])
    assert all(len(message["opened"]) == 3 for message in told)
    assert [row["details"]["runs"] for row in list_incidents(connection, 10)] == [3400, 3400, 3400]


def test_dead_runs_are_told_to_the_receivers_of_their_type_in_place_of_those_of_all_alerts(
    connection: PgConnection,
) -> None:
    billing = JobType("bill", schema=AnyPayload, on_dead=["billing@example.com", "https://chat.example.com/billing"])
    die(connection, "bill")
    die(connection, "noop")
    check(connection, (OPS,), known(billing))
    [noop, bill] = [row["id"] for row in list_incidents(connection, 10)]
    told = {row["payload"]["to"]: row["payload"]["opened"] for row in messages(connection)}
    of_chat = billing.on_dead_receivers[1].label
    assert told == {"billing@example.com": [bill], of_chat: [bill], "ops@example.com": [noop]}


def test_of_several_apps_on_a_database_each_tells_of_its_own_types(connection: PgConnection) -> None:
    billing = JobType("bill", schema=AnyPayload, on_dead="billing@example.com")
    shop_limits, bill_limits = (replace(LIMITS, app=app) for app in ("shop", "bill"))
    # The app with a receiver of its own has checked before, and finds nothing of others that it could tell.
    die(connection, "noop")
    watch((), known(billing), bill_limits).check(connection)
    assert messages(connection) == []
    die(connection, "bill")
    pass_time(connection, "31 s")
    watch(limits=shop_limits).check(connection)
    watch((), known(billing), bill_limits).check(connection)
    told = [(row["payload"]["to"], len(row["payload"]["opened"])) for row in messages(connection)]
    assert told == [("ops@example.com", 1), ("billing@example.com", 1)]
    assert open_now(connection) == [("run_died", "noop"), ("run_died", "bill")]
    # Each tells of the end, whoever checks first.
    fetch_all(connection, "UPDATE rowcall.job_runs SET status = 'cancelled' WHERE status = 'dead'")
    pass_time(connection, "6 min")
    fetch_all(connection, "UPDATE rowcall.alert_checks SET checked_at = now() - interval '31 s'")
    before = len(messages(connection))
    watch((), known(billing), bill_limits).check(connection)
    watch(limits=shop_limits).check(connection)
    told = [(row["payload"]["to"], len(row["payload"]["ended"])) for row in messages(connection)[before:]]
    assert told == [("billing@example.com", 1), ("ops@example.com", 1)]
    assert open_now(connection) == []


def test_an_app_does_not_end_what_another_app_tells_of(connection: PgConnection) -> None:
    billing = JobType("bill", schema=AnyPayload, on_dead="billing@example.com")
    shop_limits, bill_limits = (replace(LIMITS, app=app) for app in ("shop", "bill"))
    die(connection, "bill")
    watch((), known(billing), bill_limits).check(connection)
    fetch_all(connection, "UPDATE rowcall.job_runs SET status = 'cancelled' WHERE status = 'dead'")
    pass_time(connection, "6 min")
    fetch_all(connection, "UPDATE rowcall.alert_checks SET checked_at = now() - interval '31 s'")
    watch(limits=shop_limits).check(connection)
    assert open_now(connection) == [("run_died", "bill")]


def test_what_was_written_while_the_clock_was_ahead_does_not_stop_the_checks(connection: PgConnection) -> None:
    die(connection)
    check(connection)
    pass_time(connection, "-1 day")
    fetch_all(connection, "UPDATE rowcall.job_runs SET status = 'cancelled' WHERE job_type = 'noop'")
    [told] = check(connection)
    assert len(told["ended"]) == 1


def test_without_receivers_only_types_that_name_theirs_are_watched(connection: PgConnection) -> None:
    die(connection, "noop")
    assert check(connection, ()) == []
    assert open_now(connection) == []
    billing = JobType("bill", schema=AnyPayload, on_dead="billing@example.com")
    die(connection, "bill")
    [told] = check(connection, (), known(billing))
    assert told["to"] == "billing@example.com"


def test_the_receivers_are_told_before_all_other_work(connection: PgConnection) -> None:
    die(connection)
    check(connection)
    [message] = messages(connection)
    assert (message["queue"], message["priority"], message["created_by"]) == ("maintenance", -32768, "alerts")


def test_of_many_workers_one_checks_at_a_time(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        die(connection)

    def work() -> None:
        with closing(database.connect(fresh_url)) as own:
            fetch_all(own, "SET lock_timeout = '5s'")
            own.commit()
            watch().check(own)
            own.commit()

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with database.transaction(fresh_url) as connection:
        assert len(messages(connection)) == 1


def test_a_worker_that_dies_while_it_checks_has_changed_nothing_and_the_next_one_tells(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        die(connection)
    with closing(database.connect(fresh_url)) as dying, closing(database.connect(fresh_url)) as next_one:
        dying.autocommit = False
        with dying.cursor() as cursor:
            cursor.execute("SELECT 1")
        # As all connections of a worker, the next one waits for a lock only for a moment.
        fetch_all(next_one, "SET lock_timeout = '200ms'")
        next_one.commit()
        watch().check(dying)
        watch().check(next_one)
        next_one.commit()
        assert fetch_value(next_one, "SELECT count(*) FROM rowcall.incidents") == 0
        next_one.commit()
        dying.rollback()
        watch().check(next_one)
        next_one.commit()
        assert len(messages(next_one)) == 1


def test_a_test_is_told_as_an_incident_and_ends_by_itself(connection: PgConnection) -> None:
    asked = begin_test(connection, "cli:anna")
    assert [row["told"] for row in list_incidents(connection, 10)] == [False]
    assert check(connection) == [{"to": "ops@example.com", "opened": [asked], "ended": []}]
    pass_time(connection, "6 min")
    assert check(connection) == [{"to": "ops@example.com", "opened": [], "ended": [asked]}]


def test_a_test_can_follow_another_one_at_once(connection: PgConnection) -> None:
    assert begin_test(connection, "cli:anna") != begin_test(connection, "cli:anna")


def test_a_check_that_the_database_refuses_holds_up_no_schedules_and_is_tried_again_later(
    connection: PgConnection, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    die(connection)
    fetch_all(connection, "ALTER TABLE rowcall.incidents RENAME TO away")
    checks = watch()
    checks.check(connection)
    assert "alerts refused by the database" in capfd.readouterr().err
    fetch_all(connection, "ALTER TABLE rowcall.away RENAME TO incidents")
    checks.check(connection)
    assert messages(connection) == []
    late = elapsed() + 301
    monkeypatch.setattr("rowcall.alerts.intervals.elapsed", lambda: late)
    checks.check(connection)
    assert len(messages(connection)) == 1


def test_a_lock_that_stops_the_checks_for_five_minutes_is_reported(
    fresh_url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks, begun = watch(), elapsed()
    with closing(database.connect(fresh_url)) as other, closing(database.connect(fresh_url)) as own:
        fetch_all(own, "SET lock_timeout = '10ms'")
        own.commit()
        fetch_all(other, "LOCK TABLE rowcall.incidents")
        for seconds, reported in ((0, False), (299, False), (301, True), (302, False)):
            monkeypatch.setattr("rowcall.alerts.intervals.elapsed", lambda now=begun + seconds: now)
            checks.check(own)
            assert ("alerts refused by the database" in capfd.readouterr().err) is reported


def test_thousands_of_overdue_queues_are_a_hundred_incidents_and_one_message(connection: PgConnection) -> None:
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_runs (job_type, queue, run_at)"
        " SELECT 'noop', 'tenant_' || number, now() - interval '1 hour' FROM generate_series(1, 11000) AS number",
    )
    [told] = check(connection)
    alerts = [alert for alert, _ in open_now(connection)]
    assert alerts.count("run_overdue") == 100
    assert len(told["opened"]) == len(alerts)


def test_a_test_is_told_to_everyone_who_can_be_told(connection: PgConnection) -> None:
    billing = JobType("bill", schema=AnyPayload, on_dead="billing@example.com")
    begin_test(connection, "cli:anna")
    assert [told["to"] for told in check(connection, (OPS,), known(billing))] == [
        "ops@example.com",
        "billing@example.com",
    ]


def test_incidents_are_deleted_ninety_days_after_their_end(connection: PgConnection) -> None:
    fetch_all(
        connection,
        "INSERT INTO rowcall.incidents (alert, subject, details, opened_at, seen_at, ended_at)"
        " SELECT 'run_died', 'noop', '{}', at, at, at FROM unnest(ARRAY[now() - interval '91 days', now()]) AS at;"
        "INSERT INTO rowcall.incidents (alert, subject, details, opened_at, seen_at)"
        " VALUES ('run_died', 'old', '{}', now() - interval '99 days', now() - interval '99 days')",
    )
    assert delete_incidents(connection, 100) == 1
    assert fetch_value(connection, "SELECT count(*) FROM rowcall.incidents") == 2
