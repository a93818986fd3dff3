"""Which connections an app may pass: those of two drivers, bare or behind SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import psycopg2
import psycopg2.extras
import pytest
import sqlalchemy
from marshmallow import Schema, fields
from psycopg.rows import namedtuple_row, scalar_row
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from rowcall import JobType
from rowcall.base import database
from rowcall.base.database import all_or_nothing, fetch_all
from rowcall.base.errors import KeyConflict, NaturalKeyConflict, SchemaMismatch
from rowcall.queue.keys.keyless import RUNS_MOST
from rowcall_migrations.migrate import migrate


class Welcome(Schema):
    user_id = fields.Integer(required=True)
    name = fields.String(load_default="Zoë 50% 'off'")


WELCOME = JobType("shop_welcome", schema=Welcome, key=lambda payload: f"{payload['user_id']}")
NOTE = replace(WELCOME, name="shop_note", key=None)
LIVE = replace(WELCOME, name="shop_live", unique="live")

TOMORROW = datetime.now(UTC) + timedelta(days=1)


def on_psycopg2(url: str) -> Any:
    return psycopg2.connect(url)


class OwnCursors(psycopg2.extensions.connection):
    """A connection that makes cursors of its own kind, whatever kind is asked for."""

    def cursor(self, *names: Any, **_: Any) -> Any:
        return super().cursor(*names, cursor_factory=psycopg2.extras.RealDictCursor)


def with_own_cursors(url: str) -> Any:
    return psycopg2.connect(url, connection_factory=OwnCursors)


def on_psycopg(url: str) -> Any:
    return psycopg.connect(url)


def as_tuples(url: str) -> Any:
    return psycopg.connect(url, row_factory=namedtuple_row)


def as_values(url: str) -> Any:
    return psycopg.connect(url, row_factory=scalar_row, cursor_factory=psycopg.RawCursor)


def _engine(url: str, driver: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(
        url.replace("postgresql://", f"postgresql+{driver}://"), poolclass=sqlalchemy.NullPool
    )


def alchemy_on_psycopg2(url: str) -> Any:
    return _engine(url, "psycopg2").connect()


def alchemy_on_psycopg(url: str) -> Any:
    return _engine(url, "psycopg").connect()


def session_on_psycopg(url: str) -> Any:
    return Session(_engine(url, "psycopg"))


def scoped_session_on_psycopg(url: str) -> Any:
    return scoped_session(sessionmaker(_engine(url, "psycopg")))


KINDS = [on_psycopg2, with_own_cursors, on_psycopg, as_tuples, as_values]
KINDS += [alchemy_on_psycopg2, alchemy_on_psycopg, session_on_psycopg, scoped_session_on_psycopg]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def held(request: pytest.FixtureRequest, fresh_url: str) -> Iterator[Any]:
    """Return a connection of each kind that a caller may have."""
    connection = request.param(fresh_url)
    yield connection
    connection.close()


def runs(url: str) -> list[dict[str, Any]]:
    """Return the committed runs."""
    with database.transaction(url) as connection:
        return fetch_all(connection, "SELECT id, payload, run_at, natural_key FROM rowcall.job_runs ORDER BY id")


def test_a_run_is_there_with_the_callers_commit_and_not_without(held: Any, fresh_url: str) -> None:
    WELCOME.enqueue(held, {"user_id": 1})
    held.rollback()
    kept = WELCOME.enqueue(held, {"user_id": 2}, key="request-1", run_at=TOMORROW, priority=-5, created_by="web")
    assert runs(fresh_url) == []
    held.commit()
    [run] = runs(fresh_url)
    assert run == {
        "id": kept.run_id,
        "payload": {"user_id": 2, "name": "Zoë 50% 'off'"},
        "run_at": TOMORROW,
        "natural_key": "2",
    }


def test_runs_without_keys_come_back_in_order(held: Any, fresh_url: str) -> None:
    one = NOTE.enqueue(held, {"user_id": 0, "name": "one"}, created_by="web")
    many = NOTE.enqueue_many(held, [{"user_id": number} for number in range(1, RUNS_MOST + 2)], run_at=TOMORROW)
    held.commit()
    inserted = runs(fresh_url)
    assert [run["payload"]["user_id"] for run in inserted] == list(range(RUNS_MOST + 2))
    assert [run["id"] for run in inserted] == [one.run_id, *(outcome.run_id for outcome in many)]
    assert {run["run_at"] for run in inserted[1:]} == {TOMORROW}


def test_keys_are_replayed_and_refused_alike(held: Any, fresh_url: str) -> None:
    first, second = WELCOME.enqueue_many(held, [{"user_id": 1}, {"user_id": 2}], keys=["a", None], run_at=TOMORROW)
    assert WELCOME.enqueue(held, {"user_id": 1}, key="a", run_at=TOMORROW).run_id == first.run_id
    with pytest.raises(KeyConflict):
        WELCOME.enqueue(held, {"user_id": 3}, key="a")
    with pytest.raises(NaturalKeyConflict):
        WELCOME.enqueue_many(held, [{"user_id": 4}, {"user_id": 2, "name": "other"}])
    held.commit()
    assert [run["id"] for run in runs(fresh_url)] == [first.run_id, second.run_id]


def test_a_request_keeps_the_run_that_it_got_for_its_fact(held: Any) -> None:
    first = LIVE.enqueue(held, {"user_id": 1}, key="a").run_id

    def ask() -> list[int]:
        many = LIVE.enqueue_many(held, [{"user_id": 1}, {"user_id": 2}], keys=["b", "c"])
        return [outcome.run_id for outcome in (LIVE.enqueue(held, {"user_id": 1}, key="d"), *many)]

    got = ask()
    assert got[:2] == [first, first]
    fetch_all(held, "UPDATE rowcall.job_runs SET status = 'succeeded', finished_at = now()")
    assert [ask() for _ in range(7)] == [got] * 7  # psycopg 3 prepares a statement after five executions


def test_without_a_schema_the_error_says_to_migrate(held: Any, fresh_url: str) -> None:
    migrate(fresh_url, 3, "base")
    with pytest.raises(SchemaMismatch, match=r"relation \"rowcall\.job_runs\" does not exist; run `rowcall migrate`"):
        WELCOME.enqueue(held, {"user_id": 1})


def test_one_connection_enqueues_again_and_again(held: Any, fresh_url: str) -> None:
    for user_id in range(7):  # psycopg 3 prepares a statement after five executions
        WELCOME.enqueue(held, {"user_id": user_id}, run_at=TOMORROW if user_id % 2 else None)
        WELCOME.enqueue_many(held, [{"user_id": 10 + user_id}, {"user_id": 20 + user_id}])
    held.commit()
    assert len(runs(fresh_url)) == 21


def test_rows_values_and_errors_are_those_of_psycopg2(held: Any) -> None:
    [row] = fetch_all(
        held,
        "SELECT %(text)s::jsonb AS body, %(at)s::timestamptz AS at, %(many)s::text[] AS many",
        {"text": '{"a": [1, "%"]}', "at": TOMORROW, "many": ["x", None]},
    )
    assert row == {"body": {"a": [1, "%"]}, "at": TOMORROW, "many": ["x", None]}
    assert type(row) is dict
    fetch_all(held, "CREATE TEMPORARY TABLE facts (name text UNIQUE) ON COMMIT DROP")
    with pytest.raises(Exception, match="facts_name_key") as raised, all_or_nothing(held):
        fetch_all(held, "INSERT INTO facts VALUES ('a'), ('a')")
    assert database.sqlstate_of(raised.value) == "23505"
    assert fetch_all(held, "SELECT name FROM facts") == []


def test_a_block_that_fails_undoes_what_was_done_before_a_block_within_it_failed(held: Any) -> None:
    fetch_all(held, "CREATE TEMPORARY TABLE facts (name text UNIQUE) ON COMMIT DROP")

    def insert() -> None:
        with all_or_nothing(held):
            fetch_all(held, "INSERT INTO facts VALUES ('a')")
            with all_or_nothing(held):
                fetch_all(held, "INSERT INTO facts VALUES ('b'), ('b')")

    with pytest.raises(Exception, match="facts_name_key"):
        insert()
    assert fetch_all(held, "SELECT name FROM facts") == []


@contextmanager
def by_itself(connection: psycopg.Connection) -> Iterator[None]:
    connection.set_autocommit(True)
    yield


@pytest.mark.parametrize(
    "within", [by_itself, psycopg.Connection.transaction, psycopg.Connection.pipeline], ids=lambda way: way.__name__
)
def test_all_or_none_are_enqueued_in_each_way_of_psycopg(
    fresh_url: str, within: Callable[[psycopg.Connection], AbstractContextManager[object]]
) -> None:
    with psycopg.connect(fresh_url) as connection, within(connection):
        kept = WELCOME.enqueue(connection, {"user_id": 1})
        assert WELCOME.enqueue(connection, {"user_id": 1}).replayed
        with pytest.raises(NaturalKeyConflict):
            WELCOME.enqueue_many(connection, [{"user_id": 2}, {"user_id": 1, "name": "other"}])
        connection.execute("SELECT 1")
    assert [run["id"] for run in runs(fresh_url)] == [kept.run_id]


@pytest.mark.parametrize("autocommit", [True, False])
def test_what_a_pipeline_has_not_been_answered_yet_stands_before_the_runs(fresh_url: str, autocommit: bool) -> None:
    with psycopg.connect(fresh_url, autocommit=autocommit) as connection, connection.pipeline():
        connection.execute("CREATE TABLE orders (id int)")
        WELCOME.enqueue_many(connection, [{"user_id": 1}, {"user_id": 2}])
        connection.execute("INSERT INTO orders VALUES (1)")
        with pytest.raises(NaturalKeyConflict):
            WELCOME.enqueue_many(connection, [{"user_id": 3}, {"user_id": 1, "name": "other"}])
    assert [run["natural_key"] for run in runs(fresh_url)] == ["1", "2"]


def test_each_call_is_a_transaction_of_its_own_where_sqlalchemy_commits_each_statement(fresh_url: str) -> None:
    engine = _engine(fresh_url, "psycopg").execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        WELCOME.enqueue_many(connection, [{"user_id": 1}, {"user_id": 2}])
        with pytest.raises(NaturalKeyConflict):
            WELCOME.enqueue_many(connection, [{"user_id": 3}, {"user_id": 1, "name": "other"}])
        assert [run["natural_key"] for run in runs(fresh_url)] == ["1", "2"]


def test_an_error_in_a_pipeline_undoes_its_statements_alone(fresh_url: str) -> None:
    with psycopg.connect(fresh_url) as connection, connection.pipeline():
        kept = WELCOME.enqueue(connection, {"user_id": 1})
        with pytest.raises(psycopg.errors.DivisionByZero), all_or_nothing(connection):
            fetch_all(connection, "SELECT 1 / 0")
    assert [run["id"] for run in runs(fresh_url)] == [kept.run_id]
