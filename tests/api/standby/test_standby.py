"""Whatever happens to the standby, each request gets an answer: the leader's, if the standby cannot give one."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy.pool import QueuePool

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.base.database.wal import leader_position
from rowcall.base.errors import DatabaseUnavailable
from rowcall_api.http.database import reading
from rowcall_api.standby.standby import BUSY, GONE, NO_RIGHT, NOT_YET
from rowcall_migrations.grants import as_grants
from tests.api.standby.application import READ, Application, answers, application
from tests.support.logged import logged
from tests.support.processes import wait_until
from tests.support.psql import psql
from tests.support.roles import role
from tests.support.standby import Leader, StandbyServer

SLOW_ON_A_STANDBY = "SELECT pg_sleep(CASE WHEN pg_is_in_recovery() THEN 3600 ELSE 0 END)"
RUNS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"

NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"

FILE_BYTES = 16 * 2**20

# Replay waits for nobody who reads this table, and cancels who does.
CONFLICT = "LOCK TABLE rowcall.job_runs IN ACCESS EXCLUSIVE MODE"


def of_standby(lines: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(line["event"], line.get("reason")) for line in lines if line["event"].startswith("standby")]


def test_the_leader_answers_until_the_standby_has_been_looked_at(ahead: Leader, behind: StandbyServer) -> None:
    made = Application(ahead.url, behind.url)
    assert (made.standby.away, made.answered_by()) == (NOT_YET, "leader")
    wait_until(lambda: answers(made), "the standby answers")
    assert made.answered_by() == "standby"


def test_a_killed_standby_is_noticed_at_the_first_request_and_logged_once(
    asked: Application, behind: StandbyServer
) -> None:
    behind.kill()
    with logged() as lines:
        assert (asked.answered_by(), asked.standby.away) == ("leader", GONE)
        asked.standby.look()
        asked.standby.look()
        behind.start()
        wait_until(lambda: answers(asked), "the standby answers")
        asked.standby.look()
    assert of_standby(lines) == [("standby lost", GONE), ("standby back", None)]
    assert asked.answered_by() == "standby"


def test_requests_that_wait_for_a_frozen_standby_end_with_the_next_look_and_others_do_not_try_it(
    monkeypatch: pytest.MonkeyPatch, ahead: Leader, behind: StandbyServer
) -> None:
    monkeypatch.setattr("rowcall_api.standby.standby.ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("rowcall_api.http.database.ANSWER_SECONDS", 3600)
    begun, frozen = threading.Barrier(3), threading.Event()

    def read_again(connection: PgConnection) -> None:
        if not frozen.is_set():
            begun.wait()
            frozen.wait()
        fetch_all(connection, READ)

    with application(ahead.url, behind.url) as asked:
        wait_until(lambda: answers(asked), "the standby answers")
        with asked.request(read_again) as first, asked.request(read_again) as second:
            begun.wait()
            with behind.frozen():
                frozen.set()
                asked.standby.look()
                wait_until(lambda: first == second == ["leader"], "the leader has answered both")
                assert asked.answered_by() == "leader"


def test_a_request_that_begins_while_the_standby_is_frozen_ends_with_the_next_look(
    monkeypatch: pytest.MonkeyPatch, ahead: Leader, behind: StandbyServer
) -> None:
    monkeypatch.setattr("rowcall_api.standby.standby.ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("rowcall_api.http.database.ANSWER_SECONDS", 3600)
    with application(ahead.url, behind.url) as asked:
        wait_until(lambda: answers(asked), "the standby answers")
        assert asked.answered_by() == "standby"
        with behind.frozen(), asked.request(lambda _: None) as heard:
            pool = asked.standby.pool.pool
            wait_until(lambda: isinstance(pool, QueuePool) and pool.checkedout(), "the request has a connection")
            asked.standby.look()
            wait_until(lambda: heard == ["leader"], "the leader has answered")


def test_a_statement_that_replay_cancels_is_repeated_on_the_leader(
    asked: Application, ahead: Leader, behind: StandbyServer
) -> None:
    with asked.request(lambda connection: fetch_all(connection, SLOW_ON_A_STANDBY)) as heard:
        wait_until(lambda: behind.run(RUNS), "the statement runs")
        ahead.run(CONFLICT)
        wait_until(lambda: heard == ["leader"], "the leader has answered")
    # The standby itself is well.
    assert (asked.standby.away, asked.answered_by()) == (None, "standby")


def test_a_connection_that_replay_ends_between_two_statements_is_given_up(
    asked: Application, ahead: Leader, behind: StandbyServer
) -> None:
    def conflict_and_read(connection: PgConnection) -> None:
        if fetch_value(connection, "SELECT pg_is_in_recovery()"):
            ahead.run(CONFLICT)
            behind.catch_up()
        fetch_all(connection, READ)

    assert asked.answered_by(conflict_and_read) == "leader"
    wait_until(lambda: answers(asked), "the standby answers")
    assert asked.answered_by() == "standby"


def test_while_replay_is_paused_with_a_locked_table_only_the_requests_in_progress_wait_for_it(
    asked: Application, ahead: Leader, behind: StandbyServer
) -> None:
    def wait_for_it() -> bool:
        asked.standby.look()
        return asked.standby.away == BUSY

    with closing(database.connect(ahead.url)) as connection:
        fetch_all(connection, "LOCK TABLE rowcall.job_runs IN ACCESS EXCLUSIVE MODE")
        fetch_all(connection, "SELECT pg_switch_wal()")
        wait_until(
            lambda: behind.run("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'"), "it is locked"
        )
        with behind.paused():
            connection.rollback()
            with asked.request(lambda _: None) as heard:
                wait_until(wait_for_it, "a look finds the lock")
                wait_until(lambda: heard == ["leader"], "the leader has answered")
            assert asked.answered_by() == "leader"
    wait_until(lambda: answers(asked), "the standby answers")


def test_a_standby_whose_role_may_not_read_does_not_answer(ahead: Leader, behind: StandbyServer) -> None:
    psql(ahead.url, as_grants([]))
    with role(ahead.url, "web", "rowcall_enqueue") as ours:
        behind.catch_up()
        with application(ahead.url, behind.instead_of(ours.url)) as asked:
            asked.standby.look()
            assert asked.standby.away == NO_RIGHT


def test_a_promoted_standby_does_not_answer(ahead: Leader) -> None:
    with ahead.standby() as spare, application(ahead.url, spare.url) as asked:
        wait_until(lambda: answers(asked), "the standby answers")
        assert asked.answered_by() == "standby"
        spare.promote()
        assert asked.answered_by() == "leader"
        asked.standby.look()
        assert "not a standby" in str(asked.standby.away)


def test_a_url_that_leads_to_the_leader_or_nowhere_does_no_harm(ahead: Leader) -> None:
    for url in (ahead.url, "postgresql://nobody@127.0.0.1:1/nowhere"):
        with application(ahead.url, url) as asked:
            assert asked.standby.away is not None
            assert asked.answered_by() == "leader"


def test_a_standby_of_another_database_does_not_answer(
    asked: Application, ahead: Leader, behind: StandbyServer
) -> None:
    with closing(database.connect(ahead.url)) as connection:
        connection.autocommit = True
        fetch_all(connection, "CREATE DATABASE other")
    behind.catch_up()
    with application(ahead.url, behind.url.rpartition("/")[0] + "/other") as wrong:
        assert "another database" in str(wrong.standby.away)
        assert wrong.answered_by() == "leader"


def test_a_standby_that_has_not_replayed_a_migration_does_not_fail_a_request(
    asked: Application, ahead: Leader, behind: StandbyServer
) -> None:
    with behind.paused():
        ahead.run("ALTER TABLE rowcall.queues ADD COLUMN IF NOT EXISTS note text")
        assert (
            asked.answered_by(lambda connection: fetch_all(connection, "SELECT note FROM rowcall.queues")) == "leader"
        )


def test_a_standby_that_is_too_old_does_not_answer_until_it_has_caught_up(
    monkeypatch: pytest.MonkeyPatch, asked: Application, ahead: Leader, behind: StandbyServer
) -> None:
    with logged() as lines:
        with behind.paused():
            ahead.run("UPDATE rowcall.schedule_ticks SET ticked_at = now()")
            # An answer of the standby is older than that.
            monkeypatch.setattr("rowcall_api.standby.standby.MOST_SECONDS", 0)
            asked.standby.look()
            assert "behind" in str(asked.standby.away)
            assert asked.answered_by() == "leader"
            monkeypatch.undo()
            # It must be younger than that before it answers again.
            monkeypatch.setattr("rowcall_api.standby.standby.BACK_SECONDS", 0)
            asked.standby.look()
            assert "behind" in str(asked.standby.away)
            monkeypatch.undo()
        wait_until(lambda: answers(asked), "the standby answers")
        assert asked.answered_by() == "standby"
    assert [event for event, _ in of_standby(lines)] == ["standby lost", "standby back"]


def test_answers_do_not_grow_old_because_of_an_open_transaction_on_an_idle_leader(
    asked: Application, ahead: Leader
) -> None:
    with closing(database.connect(ahead.url)) as connection:
        # The leader keeps the end of this in memory, until it next writes down which transactions are running.
        fetch_all(connection, "SELECT pg_logical_emit_message(true, 'tests', repeat('-', 20000))")
        before = ahead.run(NEXT_TRANSACTION)
        wait_until(lambda: answers(asked) and asked.standby.age > 1, "the standby does not get it")
        wait_until(lambda: answers(asked) and asked.standby.age < 1, "the standby has got it")
        assert ahead.run(NEXT_TRANSACTION) != before


def test_a_position_at_the_beginning_of_a_file_is_the_end_of_the_file_before(
    ahead: Leader, behind: StandbyServer
) -> None:
    def begins_a_file() -> bool:
        ahead.run("SELECT pg_switch_wal()")
        with database.internal_transaction(ahead.url) as connection:
            return bool(leader_position(connection)["position"] % FILE_BYTES == 0)

    # Something else may be logged in between.
    wait_until(begins_a_file, "the leader is at the beginning of a file")
    behind.catch_up()


def test_nothing_can_be_written_where_the_standby_would_be_read(asked: Application) -> None:
    # On the leader, as if the standby had been promoted since it was checked.
    with pytest.raises(DatabaseUnavailable, match="read-only"), reading(asked.pool) as connection:
        fetch_all(connection, "UPDATE rowcall.queues SET paused_at = now()")
