"""Handlers' connections: each handler thread keeps one, and what a run leaves on it does not affect the next run."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import psycopg2
import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_value
from rowcall.base.outages import is_outage
from rowcall.base.watched import Answers, WatchedConnection
from rowcall.queue import Lease
from rowcall.status import Status
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.effects import perform_once
from tests.effects.attempts import SMS
from tests.support.processes import from_a_fork, wait_until
from tests.support.rows import WORKER, run_in
from tests.support.silence import network

HANDLERS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rowcall handler' AND datname = %(name)s"


@pytest.fixture
def connections(fresh_url: str) -> Iterator[Connections]:
    """Yield this process's connections; the test's own thread is a handler thread."""
    made = Connections(fresh_url, Answers())
    made.keep_for_this_thread()
    yield made
    del made
    gc.collect()


def open_now(connection: PgConnection, url: str) -> int:
    number: int = fetch_value(connection, HANDLERS, {"name": url.rpartition("/")[2]})
    return number


def backend(connections: Connections) -> int:
    with connections.internal_transaction() as connection:
        return connection.info.backend_pid


def test_one_connection_serves_all_transactions_of_a_thread(connections: Connections) -> None:
    first = backend(connections)
    for _ in range(3):
        with connections.transaction() as connection:
            assert connection.info.backend_pid == first
        assert backend(connections) == first


def test_rowcalls_own_statements_find_only_what_is_postgresqls_and_the_handlers_what_its_role_finds(
    connections: Connections,
) -> None:
    with connections.transaction() as connection:
        its_own = fetch_value(connection, "SHOW search_path")
    with connections.internal_transaction() as connection:
        assert fetch_value(connection, "SHOW search_path") == "pg_catalog, pg_temp"
        assert fetch_value(connection, "SHOW lock_timeout") == "5s"
    with connections.transaction() as connection:
        assert fetch_value(connection, "SHOW search_path") == its_own != "pg_catalog, pg_temp"
        assert fetch_value(connection, "SHOW lock_timeout") == "0"


GONE = {"forgotten": "DEALLOCATE ALL", "altered": "ALTER TABLE rowcall.other_effects ADD COLUMN more text"}


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE.keys())
def test_an_effect_is_recorded_with_a_plan_that_the_session_keeps_and_without_one_that_has_gone(
    connections: Connections, fresh_url: str, gone: str
) -> None:
    with database.transaction(fresh_url) as connection:
        run = run_in(connection, Status.RUNNING)

    def perform(key: str) -> str:
        lease, key_columns = Lease(WORKER, run["id"], run["lease_no"]), {"key": key}
        ways = connections.internal_transaction, connections.internal_statement
        return perform_once(lease, *ways, lambda: None, SMS, key_columns, {}, lambda _: None, horizon=60).state

    assert perform("1") == "applied"
    with connections.internal_transaction() as connection:
        assert fetch_value(connection, "SELECT count(*) FROM pg_prepared_statements") == 2
        fetch_value(connection, gone)
    assert [perform("2"), perform("3")] == ["applied"] * 2
    with connections.transaction():
        pass
    assert perform("4") == "applied"


def test_what_a_handler_sets_in_its_session_is_forgotten(connections: Connections) -> None:
    with connections.transaction() as connection:
        first = connection.info.backend_pid
        database.fetch_all(
            connection, "SET work_mem = '77MB'; CREATE TEMP TABLE leftover (); SELECT pg_advisory_lock(7)"
        )
    with connections.transaction() as connection:
        assert connection.info.backend_pid == first
        assert fetch_value(connection, "SHOW work_mem") != "77MB"
        assert fetch_value(connection, "SELECT to_regclass('pg_temp.leftover')") is None
        assert (
            fetch_value(
                connection,
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = %(pid)s",
                {"pid": first},
            )
            == 0
        )


def leaves_it_closed(connection: WatchedConnection) -> None:
    connection.close()


def leaves_it_serializable(connection: WatchedConnection) -> None:
    database.fetch_all(connection, "ROLLBACK")
    connection.isolation_level = psycopg2.extensions.ISOLATION_LEVEL_SERIALIZABLE


def leaves_it_in_autocommit(connection: WatchedConnection) -> None:
    database.fetch_all(connection, "ROLLBACK")
    connection.autocommit = True


def leaves_it_with_dictionaries(connection: WatchedConnection) -> None:
    connection.cursor_factory = psycopg2.extras.RealDictCursor


def leaves_it_broken(connection: WatchedConnection) -> None:
    database.fetch_all(connection, "SELECT 1 / 0")


def leaves_it_dead(connection: WatchedConnection) -> None:
    database.fetch_all(connection, "SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize(
    "leaves",
    [
        leaves_it_closed,
        leaves_it_serializable,
        leaves_it_in_autocommit,
        leaves_it_with_dictionaries,
        leaves_it_broken,
        leaves_it_dead,
    ],
)
def test_however_a_handler_leaves_its_connection_the_next_transaction_is_as_any_other(
    connections: Connections, leaves: Callable[[WatchedConnection], None]
) -> None:
    with suppress(psycopg2.Error), connections.transaction() as connection:
        leaves(connection)
    with connections.transaction() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("read committed",)
        assert not connection.autocommit


def test_a_transaction_that_a_handler_begins_behind_its_step_is_not_the_next_ones(connections: Connections) -> None:
    with connections.transaction() as kept:
        pass
    database.fetch_all(kept, "CREATE TABLE half_done ()")
    with connections.transaction() as connection:
        assert fetch_value(connection, "SELECT to_regclass('half_done')") is None
    assert kept.closed


def test_a_connection_that_the_server_has_ended_fails_no_run(connections: Connections, fresh_url: str) -> None:
    kept = backend(connections)
    with database.transaction(fresh_url) as operator:
        fetch_value(operator, "SELECT pg_terminate_backend(%(pid)s, 60000)", {"pid": kept})
    assert backend(connections) != kept


def test_a_connection_that_idled_for_long_is_made_anew(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = backend(connections)
    monkeypatch.setattr("rowcall_worker.attempt.connections.IDLE_SECONDS", 0.0)
    assert backend(connections) != kept


def test_a_step_within_a_step_and_a_handlers_own_thread_have_connections_of_their_own_which_are_closed(
    connections: Connections, fresh_url: str
) -> None:
    seen: list[int] = []
    with database.transaction(fresh_url) as watching:
        watching.autocommit = True  # within a transaction, pg_stat_activity would not change
        with connections.transaction() as outer:
            seen += [outer.info.backend_pid, backend(connections)]
            thread = threading.Thread(target=lambda: seen.append(backend(connections)))
            thread.start()
            thread.join()
        assert len(set(seen)) == 3
        wait_until(lambda: open_now(watching, fresh_url) == 1, "one connection is kept")


def test_the_connection_of_a_thread_that_ends_is_closed(fresh_url: str) -> None:
    connections = Connections(fresh_url, Answers())

    def serve() -> None:
        connections.keep_for_this_thread()
        backend(connections)

    with database.transaction(fresh_url) as watching:
        watching.autocommit = True  # within a transaction, pg_stat_activity would not change
        thread = threading.Thread(target=serve)
        thread.start()
        thread.join()
        wait_until(lambda: open_now(watching, fresh_url) == 0, "no connection is open")


def test_a_process_that_a_handler_forks_has_connections_of_its_own_and_leaves_the_parents_alone(
    connections: Connections,
) -> None:
    kept = backend(connections)

    def in_child() -> int:
        connections.keep_for_this_thread()
        return backend(connections)

    assert from_a_fork(in_child) not in ("", str(kept))
    assert backend(connections) == kept


def test_a_statement_of_rowcalls_in_a_handler_does_not_wait_for_a_silent_server_for_ever(fresh_url: str) -> None:
    answers = Answers()
    with network(fresh_url) as wires:
        connections = Connections(wires.url, answers, patience=0.0)
        connections.keep_for_this_thread()
        backend(connections)
        wires.fall_silent()
        ends = threading.Event()

        def keep() -> None:
            while not ends.wait(0.05):
                answers.end_overdue()

        thread = threading.Thread(target=keep)
        thread.start()
        with pytest.raises(psycopg2.Error) as raised, connections.internal_transaction() as connection:
            fetch_value(connection, "SELECT 1")
        ends.set()
        thread.join()
        assert is_outage(raised.value)
