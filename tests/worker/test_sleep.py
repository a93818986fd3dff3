"""When an idle worker relies on notifications: only when no enqueuer can miss that it sleeps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.queue.workers import Registration, alive, register, stopped
from rowcall_worker.runtime.claims.sleep import AWAKE_SECONDS, IN_VAIN_SECONDS, OPEN_SECONDS, Sleep, State
from tests.support.processes import wait_until

WORKER = Registration("worker-1", "host", 1, "1", None, ["noop"], 10)


@pytest.fixture
def connection(fresh_url: str) -> Iterator[PgConnection]:
    connection = database.connect(fresh_url)
    connection.autocommit = True
    register(connection, WORKER)
    yield connection
    connection.close()


@pytest.fixture
def sleep() -> Sleep:
    return Sleep(WORKER.id, 60.0, lambda: True)


def is_told(connection: PgConnection) -> bool:
    return bool(fetch_value(connection, "SELECT sleeps_until > now() FROM rowcall.workers"))


def find_nothing(sleep: Sleep, connection: PgConnection, state: State) -> list[float]:
    """Find nothing until it is in this state, while other tests have open transactions; return its pauses."""
    pauses: list[float] = []

    def look() -> bool:
        if sleep.state is not state:
            sleep.nothing(connection, heard=False)
            pauses.append(sleep.pause)
        return sleep.state is state

    wait_until(look, f"it waits for {state.value}")
    return pauses


def test_it_polls_a_few_times_and_then_says_that_it_sleeps(connection: PgConnection, sleep: Sleep) -> None:
    sleep.found(connection)
    pauses = find_nothing(sleep, connection, State.FALLING_ASLEEP)
    assert (len(pauses), max(pauses)) == (3, AWAKE_SECONDS)
    assert is_told(connection)


def test_it_looks_everywhere_once_more_before_it_sleeps(connection: PgConnection, sleep: Sleep) -> None:
    find_nothing(sleep, connection, State.FALLING_ASLEEP)
    wait_until(lambda: sleep.nothing(connection, heard=False), "it looks everywhere")
    assert (sleep.state, sleep.pause) == (State.LAST_LOOK, 0)
    assert not sleep.nothing(connection, heard=False)
    assert (sleep.state, sleep.pause) == (State.ASLEEP, float("inf"))


def test_it_polls_until_every_transaction_has_ended_that_may_not_see_it_asleep(
    connection: PgConnection, sleep: Sleep, fresh_url: str
) -> None:
    with database.transaction(fresh_url) as other:
        fetch_all(other, "SELECT pg_current_xact_id()")
        find_nothing(sleep, connection, State.FALLING_ASLEEP)
        for _ in range(20):
            assert not sleep.nothing(connection, heard=False)
        assert (sleep.state, sleep.pause) == (State.FALLING_ASLEEP, OPEN_SECONDS)
    find_nothing(sleep, connection, State.ASLEEP)


def test_a_transaction_that_has_written_nothing_yet_keeps_nobody_awake(
    connection: PgConnection, sleep: Sleep, fresh_url: str
) -> None:
    with database.transaction(fresh_url) as other:
        fetch_all(other, "SELECT now()")
        find_nothing(sleep, connection, State.ASLEEP)


def test_what_it_finds_wakes_it_up(connection: PgConnection, sleep: Sleep) -> None:
    find_nothing(sleep, connection, State.ASLEEP)
    sleep.found(connection)
    assert (sleep.state, is_told(connection)) == (State.AWAKE, False)


@pytest.mark.parametrize("state", [State.FALLING_ASLEEP, State.LAST_LOOK])
def test_what_it_hears_while_it_falls_asleep_keeps_it_awake(
    connection: PgConnection, sleep: Sleep, state: State
) -> None:
    find_nothing(sleep, connection, state)
    sleep.nothing(connection, heard=True)
    assert (sleep.state, is_told(connection)) == (State.AWAKE, False)


def test_woken_in_vain_it_is_awake_and_sleeps_again_much_later(connection: PgConnection, sleep: Sleep) -> None:
    find_nothing(sleep, connection, State.ASLEEP)
    sleep.nothing(connection, heard=True)
    assert (sleep.state, is_told(connection)) == (State.AWAKE, False)
    pauses = find_nothing(sleep, connection, State.FALLING_ASLEEP)
    assert max(pauses) >= IN_VAIN_SECONDS


def test_a_poll_that_finds_nothing_lets_it_sleep_on(connection: PgConnection, sleep: Sleep) -> None:
    find_nothing(sleep, connection, State.ASLEEP)
    sleep.nothing(connection, heard=False)
    assert (sleep.state, is_told(connection)) == (State.ASLEEP, True)


def test_where_no_notification_reaches_it_it_never_sleeps(connection: PgConnection) -> None:
    sleep = Sleep(WORKER.id, 60.0, lambda: False)
    for _ in range(100):
        sleep.nothing(connection, heard=False)
    assert (sleep.state, is_told(connection)) == (State.AWAKE, False)
    assert sleep.pause > IN_VAIN_SECONDS


def test_while_its_row_is_locked_it_polls(connection: PgConnection, sleep: Sleep, fresh_url: str) -> None:
    with database.transaction(fresh_url) as other:
        fetch_all(other, "SELECT id FROM rowcall.workers FOR UPDATE")
        for _ in range(10):
            sleep.nothing(connection, heard=False)
        assert (sleep.state, is_told(connection)) == (State.AWAKE, False)
    find_nothing(sleep, connection, State.ASLEEP)


def test_without_room_it_waits_for_what_runs(connection: PgConnection, sleep: Sleep) -> None:
    sleep.found(connection)
    sleep.busy()
    assert sleep.pause == float("inf")


def test_a_heartbeat_lets_a_sleeper_be_notified_for_longer_and_nobody_else(
    connection: PgConnection, sleep: Sleep
) -> None:
    alive(connection, WORKER, 3600)
    assert not is_told(connection)
    find_nothing(sleep, connection, State.ASLEEP)
    alive(connection, WORKER, 3600)
    ahead = "SELECT sleeps_until > now() + interval '50 minutes' FROM rowcall.workers"
    assert fetch_value(connection, ahead)
    stopped(connection, WORKER.id)
    assert not is_told(connection)


def test_a_heartbeat_knows_whether_the_sleeper_was_seen(connection: PgConnection, sleep: Sleep) -> None:
    assert alive(connection, WORKER, 3600)
    find_nothing(sleep, connection, State.ASLEEP)
    assert alive(connection, WORKER, 3600)
    fetch_all(connection, "UPDATE rowcall.workers SET sleeps_until = now() - interval '1 second'")
    assert [alive(connection, WORKER, 3600) for _ in range(2)] == [False, True]
    fetch_all(connection, "DELETE FROM rowcall.workers")
    assert [alive(connection, WORKER, 3600) for _ in range(2)] == [False, True]
