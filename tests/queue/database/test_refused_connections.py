"""What an app may not pass as a connection: the error says what to pass."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import sqlalchemy
from marshmallow import Schema, fields
from sqlalchemy.orm import scoped_session, sessionmaker

from rowcall import JobType
from rowcall.base import database
from rowcall.base.errors import NotAConnection, RowcallError


class Welcome(Schema):
    user_id = fields.Integer(required=True)


WELCOME = JobType("shop_welcome", schema=Welcome)


class SQLAlchemy:
    """Like Flask-SQLAlchemy's `db`: the caller should pass its session."""

    def __init__(self) -> None:
        self.session = scoped_session(sessionmaker())


class ConnectionPool:
    """Like psycopg_pool's: it lends connections."""

    def connection(self) -> None:
        """Lend a connection."""


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("postgresql://shop", "a str: pass an open one, such as the one that psycopg2.connect"),
        (None, "a NoneType"),
        (sqlalchemy.create_engine("postgresql+psycopg2://"), "an Engine: .*`with engine.begin\\(\\) as connection:`"),
        (sessionmaker(), "a sessionmaker: call it"),
        (SQLAlchemy(), "a SQLAlchemy: pass its `session`"),
        (ConnectionPool(), "a ConnectionPool: .*`with ....connection\\(\\) as connection:`"),
        (psycopg.AsyncConnection, "a type"),
    ],
)
def test_what_is_no_connection_is_refused_with_what_to_pass(wrong: Any, hint: str) -> None:
    with pytest.raises(NotAConnection, match=hint) as raised:
        WELCOME.enqueue(wrong, {"user_id": 1})
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, RowcallError)


def test_sqlalchemys_connection_to_another_database_is_refused_by_its_name() -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with (
        engine.connect() as connection,
        pytest.raises(NotAConnection, match="sqlite\\+pysqlite.*postgresql\\+psycopg"),
    ):
        WELCOME.enqueue(connection, {"user_id": 1})
    engine.dispose()


def test_a_cursor_is_refused_with_its_connection_to_pass(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection, connection.cursor() as cursor:
        wrong: Any = cursor
        with pytest.raises(NotAConnection, match="a cursor: pass its `connection`"):
            WELCOME.enqueue(wrong, {"user_id": 1})


def test_an_asynchronous_connection_is_refused(fresh_url: str) -> None:
    async def enqueued() -> None:
        async with await psycopg.AsyncConnection.connect(fresh_url) as connection:
            wrong: Any = connection
            WELCOME.enqueue(wrong, {"user_id": 1})

    refused = pytest.raises(NotAConnection, match="an AsyncConnection: asynchronous connections cannot be used")
    # In a thread of its own, because the browser of other tests leaves a running loop in this one.
    with ThreadPoolExecutor(1) as pool, refused:
        pool.submit(lambda: asyncio.run(enqueued())).result()
