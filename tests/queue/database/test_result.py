"""outcome.result(): an app waits for its run, on each kind of connection that it may have."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import psycopg2
import pytest
import sqlalchemy
from sqlalchemy.orm import Session, sessionmaker

from rowcall import NoResult, ResultTimeout, enqueue, queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import NotAConnection, RowcallError, TransactionOpen
from rowcall.queue import ClaimRequest, Done, Enqueued, Failure
from rowcall.queue.retention.walk import PruneOptions, prune_runs
from rowcall.status import Status
from tests.queue.database.test_callers_connections import KINDS, alchemy_on_psycopg2, on_psycopg, on_psycopg2
from tests.support.housekeeping import TYPES, Rehearsal
from tests.support.processes import wait_until
from tests.support.rows import WORKER, run_in

OPERATOR = Operator("a test")

IDLE = "SELECT pid FROM pg_stat_activity WHERE pid = %(pid)s AND state = 'idle' AND query = 'ROLLBACK'"


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def held(request: pytest.FixtureRequest, fresh_url: str) -> Iterator[Any]:
    """Return a connection of each kind that a caller may have."""
    connection = request.param(fresh_url)
    yield connection
    connection.close()


def perform(url: str, result: str | None = '{"sent": [1, null]}') -> None:
    """Claim the run and let it succeed, as a worker does."""
    with database.transaction(url) as connection:
        [claimed] = queue.claim(connection, WORKER, ClaimRequest({"noop": 60.0}, 1)).claimed
        queue.succeed(connection, [Done(queue.Lease(WORKER, claimed.run_id, claimed.lease_no), result)])


def asked(url: str, sql: str, parameters: dict[str, Any]) -> list[database.Row]:
    with database.transaction(url) as connection:
        return fetch_all(connection, sql, parameters)


def in_a_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_the_result_is_returned_when_the_run_has_succeeded_meanwhile(held: Any, fresh_url: str) -> None:
    outcome = enqueue(held, "noop", {})
    held.commit()
    worker = in_a_thread(lambda: perform(fresh_url))
    assert outcome.result(held, timeout=60) == {"sent": [1, None]}
    worker.join()
    again = enqueue(held, "noop", {"more": 1})  # the connection is as it was
    held.rollback()
    with pytest.raises(NoResult, match=f"run {again.run_id} cannot be seen on this connection: commit") as raised:
        again.result(held, timeout=60)
    assert raised.value.status is None


def test_a_connection_in_the_transaction_that_enqueued_the_run_is_refused_at_once(held: Any) -> None:
    outcome = enqueue(held, "noop", {})
    with pytest.raises(TransactionOpen, match="commit first"):
        outcome.result(held, timeout=60)
    held.commit()
    with pytest.raises(ResultTimeout, match=f"run {outcome.run_id} has not ended within 0.1 seconds: it is queued"):
        outcome.result(held, timeout=0.1)
    with pytest.raises(TimeoutError):
        outcome.result(held, timeout=0)


def test_no_transaction_is_open_between_two_reads(fresh_url: str) -> None:
    with closing(psycopg2.connect(fresh_url)) as connection:
        outcome = enqueue(connection, "noop", {})
        connection.commit()
        waiting = in_a_thread(lambda: outcome.result(connection, timeout=60))
        pid = connection.info.backend_pid
        wait_until(lambda: asked(fresh_url, IDLE, {"pid": pid}), "the connection is idle after a read")
        perform(fresh_url, None)
        waiting.join()


@pytest.mark.parametrize("connected", [on_psycopg2, on_psycopg])
def test_in_autocommit_there_is_no_transaction_to_end(connected: Callable[[str], Any], fresh_url: str) -> None:
    with closing(connected(fresh_url)) as connection:
        connection.autocommit = True
        outcome = enqueue(connection, "noop", {})
        perform(fresh_url, "3")
        assert outcome.result(connection, timeout=60) == 3
        connection.cursor().execute("BEGIN")
        assert refused(outcome, connection)


def refused(outcome: Enqueued, connection: Any) -> bool:
    with pytest.raises(TransactionOpen):
        outcome.result(connection, timeout=60)
    return True


def test_a_block_that_commits_at_its_end_is_refused_within(fresh_url: str) -> None:
    outcome = Enqueued(1, replayed=False)
    with psycopg.connect(fresh_url) as connection, connection.transaction():
        assert refused(outcome, connection)
    with closing(alchemy_on_psycopg2(fresh_url)) as pooled, pooled.begin():
        assert refused(outcome, pooled)
    # As a test does that rolls back all that an app commits.
    with closing(alchemy_on_psycopg2(fresh_url)) as outer, outer.begin(), Session(outer) as session:
        assert refused(outcome, session)


def test_the_objects_of_a_session_do_not_expire(fresh_url: str) -> None:
    class Base(sqlalchemy.orm.DeclarativeBase):
        """The app's models."""

    class Order(Base):
        """One of them."""

        __tablename__ = "orders"
        id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)

    engine = sqlalchemy.create_engine(fresh_url.replace("postgresql://", "postgresql+psycopg2://"))
    Base.metadata.create_all(engine)
    with sessionmaker(engine, expire_on_commit=False)() as session:
        session.add(order := Order(id=1))
        outcome = enqueue(session, "noop", {})
        session.commit()
        perform(fresh_url, '"done"')
        assert outcome.result(session, timeout=60) == "done"
        assert "id" not in sqlalchemy.inspect(order).expired_attributes
    engine.dispose()


def ended(connection: PgConnection, status: Status, **columns: str) -> Enqueued:
    return Enqueued(run_in(connection, status, **columns)["id"], replayed=False)


def test_a_run_that_ended_without_a_result_is_an_error_that_says_why(fresh_url: str) -> None:
    with closing(psycopg2.connect(fresh_url)) as connection:
        dead = ended(connection, Status.DEAD, error_type="'ValueError'", last_error="'it broke'")
        bare = ended(connection, Status.DEAD, pruned_at="now()")
        cancelled = ended(connection, Status.CANCELLED)
        pruned = ended(connection, Status.SUCCEEDED, pruned_at="now()")
        connection.commit()
        for outcome, status, why in (
            (dead, Status.DEAD, "is dead: ValueError: it broke; `rowcall runs show 1` shows the run"),
            (bare, Status.DEAD, "is dead: its error was pruned"),
            (cancelled, Status.CANCELLED, "was cancelled"),
            (pruned, Status.SUCCEEDED, "succeeded, but its result was pruned"),
        ):
            with pytest.raises(NoResult, match=f"run {outcome.run_id} {why}") as raised:
                outcome.result(connection, timeout=60)
            assert (raised.value.run_id, raised.value.status) == (outcome.run_id, status)
            assert isinstance(raised.value, RowcallError)
            assert not isinstance(raised.value, TimeoutError)


def test_the_result_of_an_archived_run_is_returned(fresh_url: str) -> None:
    old = dict.fromkeys(("created_at", "finished_at", "updated_at"), "'2020-05-10 12:00+00'")
    with closing(psycopg2.connect(fresh_url)) as connection:
        succeeded = ended(connection, Status.SUCCEEDED, result="'[1]'", **old)
        keyed = ended(connection, Status.SUCCEEDED, result="'[2]'", idempotency_key="'k'", **old)
        dead = ended(connection, Status.DEAD, last_error="'it broke'", **old)
        policy = TYPES["prune_runs"].checked({"archive": "table"})
        assert [*prune_runs(policy, PruneOptions(Rehearsal(connection), to_table=True))]
        connection.commit()
        assert succeeded.result(connection, timeout=0) == [1]
        assert keyed.result(connection, timeout=0) == [2]
        with pytest.raises(NoResult, match=f"run {dead.run_id} is dead: it broke; `rowcall runs show"):
            dead.result(connection, timeout=0)


def test_a_run_that_fails_and_will_be_tried_again_is_waited_for(fresh_url: str) -> None:
    with closing(psycopg2.connect(fresh_url)) as connection:
        outcome = enqueue(connection, "noop", {})
        connection.commit()
        [claimed] = queue.claim(connection, WORKER, ClaimRequest({"noop": 60.0}, 1)).claimed
        lease = queue.Lease(WORKER, claimed.run_id, claimed.lease_no)
        queue.fail(connection, lease, Failure("it broke", "ValueError"), delay=0)
        connection.commit()
        with pytest.raises(ResultTimeout, match="it is failed"):
            outcome.result(connection, timeout=0)
        perform(fresh_url, "1")
        assert outcome.result(connection, timeout=60) == 1


def test_what_is_no_connection_is_refused(fresh_url: str) -> None:
    wrong: Any = fresh_url
    with pytest.raises(NotAConnection):
        Enqueued(1, replayed=False).result(wrong, timeout=1)


@pytest.mark.parametrize("timeout", ["5", True, -1, float("nan"), float("inf"), 10**400, None])
def test_a_timeout_that_is_no_number_of_seconds_is_refused_with_what_it_is(fresh_url: str, timeout: Any) -> None:
    with closing(psycopg2.connect(fresh_url)) as connection, pytest.raises(ValueError, match="a number of seconds"):
        Enqueued(1, replayed=False).result(connection, timeout=timeout)
