"""A handler's transaction as SQLAlchemy's connection or session: models and the run's success are in one commit."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from rowcall import enqueue
from rowcall.base import database
from rowcall.base.database import fetch_all, fetch_value
from rowcall_worker.attempt.context import Run
from tests.worker.attempts import Attempts


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    token: Mapped[uuid.UUID] = mapped_column(default=uuid.uuid4)


class OwnSession(Session):
    pass


SESSIONS = [Session, OwnSession, sessionmaker(), sessionmaker(class_=OwnSession, autoflush=False)]


@pytest.fixture
def attempt(fresh_url: str) -> Attempts:
    return Attempts(fresh_url)


@pytest.mark.parametrize("as_", SESSIONS)
def test_what_a_session_holds_is_committed_with_the_runs_success(attempt: Attempts, as_: Any) -> None:
    order = Order(name="bread")

    def handler(run: Run) -> None:
        with run.transaction({"packed": True}, as_=as_) as session:
            session.add(order)

    assert attempt(handler).finished
    assert attempt.state == ("succeeded", ["bread"])
    assert (order.id, order.name, type(order.token)) == (1, "bread", uuid.UUID)


@pytest.mark.parametrize("outer", ["transaction", "step"])
def test_a_transaction_within_another_block_is_refused_because_the_outer_rows_would_be_lost(
    attempt: Attempts, outer: str
) -> None:
    def handler(run: Run) -> None:
        with getattr(run, outer)(as_=Session) as session:
            session.add(Order(name="bread"))
            session.flush()
            with run.transaction():
                pass

    _, text, permanent = attempt.failed_by(handler)
    assert permanent
    assert f"the handler called run.transaction() within run.{outer}()" in text
    assert attempt.state == ("running", [])


def test_what_a_connection_wrote_is_committed_with_the_runs_success(attempt: Attempts) -> None:
    def handler(run: Run) -> None:
        with run.transaction(as_=Connection) as connection:
            connection.execute(sqlalchemy.insert(Order), [{"name": "bread"}, {"name": "cake"}])

    assert attempt(handler).finished
    assert attempt.state == ("succeeded", ["bread", "cake"])


def test_steps_and_other_blocks_follow_each_other_on_one_connection(attempt: Attempts) -> None:
    seen: list[object] = []

    def handler(run: Run) -> None:
        with run.step(as_=Session) as session:
            session.add(Order(name="first"))
            seen.append(session.scalar(text("SELECT pg_backend_pid()")))
            run.save(session, {"done": 1})
        assert run.saved() == {"done": 1}
        with run.step() as plain:
            [row] = fetch_all(plain, "SELECT pg_backend_pid() AS pid, token::uuid, '{\"a\": 1}'::jsonb FROM orders")
            seen.append(row["pid"])
            # As psycopg2 converts them by default, even if SQLAlchemy used the connection before.
            assert [type(value) for value in row.values()] == [int, str, dict]
        with run.step(as_=Connection) as connection:
            seen.append(connection.scalar(text("SELECT pg_backend_pid()")))
        with run.transaction(as_=Session) as session:
            session.add(Order(name="last"))
            seen.append(session.scalar(text("SELECT pg_backend_pid()")))
            assert session.scalars(select(Order.token)).first().__class__ is uuid.UUID

    assert attempt(handler).finished
    assert len(set(seen)) == 1
    assert attempt.state == ("succeeded", ["first", "last"])


def test_a_run_and_an_effect_are_written_through_the_session(attempt: Attempts) -> None:
    def handler(run: Run) -> None:
        with run.transaction(as_=Session) as session:
            enqueue(session, "noop", {"from": "the session"})
            key = {"user_id": 1, "week_start_date": "2026-03-23"}
            assert run.record(session, "sent_reports", key=key, content={})
            assert [row["kind"] for row in run.effects(session)] == ["sent_reports"]

    assert attempt(handler).finished
    with database.transaction(attempt.url) as connection:
        assert fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs") == 2


def test_an_error_in_the_block_rolls_all_of_it_back(attempt: Attempts) -> None:
    def handler(run: Run) -> None:
        with run.transaction(as_=Session) as session:
            session.add(Order(name="bread"))
            session.flush()
            raise RuntimeError("no oven")

    assert attempt.failed_by(handler)[:2] == ("RuntimeError", "no oven")
    assert attempt.state == ("running", [])


@pytest.mark.parametrize("flushed", [True, False])
def test_what_the_database_refuses_fails_the_attempt_and_says_why(attempt: Attempts, flushed: bool) -> None:
    def handler(run: Run) -> None:
        with run.transaction(as_=Session) as session:
            session.add_all([Order(name="bread"), Order(name="bread")])
            if flushed:
                session.flush()

    kind, error, permanent = attempt.failed_by(handler)
    assert (kind, "orders_name_key" in error, permanent) == ("IntegrityError", True, False)
    assert attempt.state == ("running", [])


def test_after_a_refusal_the_session_rolls_back_and_goes_on(attempt: Attempts) -> None:
    def handler(run: Run) -> None:
        with run.transaction(as_=Session) as session:
            session.add(Order(name="bread"))
            with pytest.raises(IntegrityError), session.begin_nested():
                session.add(Order(name="bread"))
            session.add_all([Order(name="cake"), Order(name="cake")])
            with pytest.raises(IntegrityError):
                session.flush()
            session.rollback()
            session.add(Order(name="pie"))

    assert attempt(handler).finished
    assert attempt.state == ("succeeded", ["pie"])


def session_commits(run: Run) -> None:
    with run.transaction(as_=Session) as session:
        session.add(Order(name="bread"))
        session.commit()


def session_commits_at_the_end_of_a_block(run: Run) -> None:
    with run.step(as_=Session) as session, session.begin():
        session.add(Order(name="bread"))


def connection_commits(run: Run) -> None:
    with run.transaction(as_=Connection) as connection:
        connection.execute(sqlalchemy.insert(Order), {"name": "bread"})
        connection.commit()


def connection_rolls_back(run: Run) -> None:
    with run.transaction(as_=Connection) as connection:
        connection.execute(sqlalchemy.insert(Order), {"name": "bread"})
        connection.rollback()


def session_is_closed(run: Run) -> None:
    with run.transaction(as_=Session) as session:
        session.add(Order(name="bread"))
        session.flush()
        session.close()


def session_is_closed_at_the_end_of_a_block(run: Run) -> None:
    with run.transaction(as_=Session) as session, session:
        session.add(Order(name="bread"))
        session.flush()


@pytest.mark.parametrize(
    "handler",
    [
        session_commits,
        session_commits_at_the_end_of_a_block,
        session_is_closed,
        session_is_closed_at_the_end_of_a_block,
        connection_commits,
        connection_rolls_back,
    ],
)
def test_ending_the_transaction_within_the_block_is_refused(
    attempt: Attempts, handler: Callable[[Run], object]
) -> None:
    kind, error, permanent = attempt.failed_by(handler)
    assert (kind, "within run.step() or run.transaction()" in error, permanent) == ("Permanent", True, True)
    assert attempt.state == ("running", [])


def test_a_lost_lease_refuses_what_the_session_holds(attempt: Attempts) -> None:
    with database.transaction(attempt.url) as connection:
        fetch_all(connection, "UPDATE rowcall.job_runs SET lease_no = lease_no + 1")

    def handler(run: Run) -> None:
        with run.transaction(as_=Session) as session:
            session.add(Order(name="bread"))

    assert attempt.failed_by(handler)[0] == "LeaseLost"
    assert attempt.state == ("running", [])


def test_a_connection_that_is_lost_in_the_block_is_replaced_for_the_next(attempt: Attempts) -> None:
    def lose(run: Run) -> None:
        with run.transaction(as_=Session) as session:
            session.add(Order(name="bread"))
            session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    def work(run: Run) -> None:
        with run.transaction(as_=Session) as session:
            session.add(Order(name="cake"))

    assert attempt.failed_by(lose)[0] == "OperationalError"
    assert attempt(work).finished
    assert attempt.state == ("succeeded", ["cake"])


@pytest.mark.parametrize("as_", [dict, lambda **_: None, 5, lambda: None])
def test_what_makes_no_session_is_told(attempt: Attempts, as_: Any) -> None:
    def handler(run: Run) -> None:
        with run.transaction(as_=as_):
            pass

    kind, error, permanent = attempt.failed_by(handler)
    assert (kind, "pass sqlalchemy.orm.Session" in error, permanent) == ("Permanent", True, True)
