"""Connections and transactions: what is committed, what is rolled back, and what errors say."""

from __future__ import annotations

import os
import socket

import psycopg2
import pytest
from sqlalchemy.orm import scoped_session, sessionmaker

from rowcall import enqueue
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.database.pool import open_pool

ADD = "CREATE TABLE IF NOT EXISTS notes (name text); INSERT INTO notes VALUES (%(name)s)"
COUNT = "SELECT count(*) FROM notes WHERE name = %(name)s"


def add_and_fail(connection: PgConnection, name: str) -> None:
    database.fetch_all(connection, ADD, {"name": name})
    raise ValueError("on the way")


def test_a_transaction_is_committed_at_its_end_and_rolled_back_on_an_error(module_url: str) -> None:
    with database.transaction(module_url) as connection:
        database.fetch_all(connection, ADD, {"name": "kept"})
    with pytest.raises(ValueError, match="on the way"), database.transaction(module_url) as connection:
        add_and_fail(connection, "undone")
    with database.transaction(module_url) as connection:
        assert database.fetch_value(connection, COUNT, {"name": "kept"}) == 1
        assert database.fetch_value(connection, COUNT, {"name": "undone"}) == 0


def test_the_error_that_broke_a_connection_is_told_and_not_that_it_is_broken(module_url: str) -> None:
    with (
        pytest.raises(psycopg2.OperationalError, match="terminating connection|server closed the connection"),
        database.transaction(module_url) as connection,
    ):
        database.fetch_all(connection, "SELECT pg_terminate_backend(pg_backend_pid())")


def test_a_server_that_vanishes_is_found_out_by_who_waits_for_it(module_url: str) -> None:
    pool = open_pool(module_url, pool_size=1)
    with pool.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, PgConnection)
        with socket.socket(fileno=os.dup(driver.fileno())) as wire:
            kept_alive = wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            idle = wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            unheard = wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    pool.dispose()
    assert (bool(kept_alive), idle, unheard) == (True, 10, 25_000)


def test_a_pooled_connection_in_a_failed_transaction_is_replaced(module_url: str) -> None:
    pool = open_pool(module_url, pool_size=1)
    with pool.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, PgConnection)
    with pytest.raises(psycopg2.Error):  # like a ping that is cancelled
        database.fetch_all(driver, "SELECT 1/0")
    with pool.connect() as connection:
        assert connection.connection.driver_connection is not driver
    pool.dispose()


def test_a_run_is_enqueued_with_what_flask_sqlalchemy_calls_its_session(module_url: str) -> None:
    pool = open_pool(module_url, pool_size=1)
    session = scoped_session(sessionmaker(pool))
    undone = enqueue(session, "noop", {"user_id": 1})
    session.rollback()
    kept = enqueue(session, "noop", {"user_id": 2})
    session.commit()
    session.remove()
    pool.dispose()
    with database.transaction(module_url) as connection:
        ids = database.fetch_all(connection, "SELECT id FROM rowcall.job_runs")
    assert [row["id"] for row in ids] == [kept.run_id] != [undone.run_id]
