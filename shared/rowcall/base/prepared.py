"""Prepared statements, because planning is most of the cost of the statements that a worker repeats."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeGuard, TypeVar

from psycopg2.errors import DuplicatePreparedStatement, FeatureNotSupported, InvalidSqlStatementName
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from rowcall.base.database import Connection, PgConnection, Row, fetch_all, fetch_tuples
from rowcall.base.watched import WatchedConnection

Answer = TypeVar("Answer")

# The SET LOCAL commands before the statement itself.
SETTINGS = re.compile(r"(?:SET LOCAL [^;]+;\s*)*")

PARAMETER = re.compile(r"%\((\w+)\)s")

# Use one plan for all parameters from the first execution on, because the best plan of these statements does not depend
# on them.  By default, PostgreSQL plans each of the first five executions, and then compares costs.
ONE_PLAN = "SET LOCAL plan_cache_mode = force_generic_plan;"

# The session does not have the statement or has one that we did not prepare, or the result types have changed.
PLAN_IS_GONE = (InvalidSqlStatementName, DuplicatePreparedStatement, FeatureNotSupported)


@dataclass(frozen=True)
class Prepared:
    """A statement's name, and the SQL for its first execution (PREPARE and EXECUTE) and for all others (EXECUTE)."""

    name: str
    first: str
    again: str

    @classmethod
    @cache
    def of(cls, text: str) -> Prepared:
        """Derive the name from the text, so that it means the same statement in all sessions and all releases."""
        found = SETTINGS.match(text)
        assert found
        settings, statement = ONE_PLAN + found[0], text[found.end() :]
        names = list(dict.fromkeys(PARAMETER.findall(statement)))
        numbered = PARAMETER.sub(lambda name: f"${names.index(name[1]) + 1}", statement)
        name = f"rowcall_{hashlib.sha256(numbered.encode()).hexdigest()[:16]}"
        execute = f"EXECUTE {name} ({', '.join(f'%({name})s' for name in names)})"
        return cls(name, f"{settings} PREPARE {name} AS {numbered}; {execute}", f"{settings} {execute}")


def fetch_prepared(connection: PgConnection, sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement in its own transaction; prepare it unless a pooler shares the session."""
    return _run_prepared(fetch_tuples, connection, sql, parameters)


def fetch_prepared_row(connection: Connection, sql: str, parameters: Mapping[str, Any]) -> Row | None:
    """Run a statement and return its first row; prepare it if it is the first of an internal transaction."""
    rows = _run_prepared(fetch_all, connection, sql, parameters)
    return rows[0] if rows else None


def _run_prepared(
    fetch: Callable[..., Answer], connection: Connection, sql: str, parameters: Mapping[str, Any]
) -> Answer:
    if not _keeps_plans(connection):
        return fetch(connection, sql, parameters)
    prepared = Prepared.of(sql)
    text = prepared.again
    if prepared.name not in connection.plans:
        # Recorded before it is sent, because a statement stays prepared when its execution fails.
        text, connection.plans = prepared.first, connection.plans | {prepared.name}
    try:
        return fetch(connection, text, parameters)
    except PLAN_IS_GONE:
        connection.keeps_plans = False
        connection.rollback()  # nothing but this statement, if the prologue has begun a transaction
        return fetch(connection, sql, parameters)


def _keeps_plans(connection: Connection) -> TypeGuard[WatchedConnection]:
    """Return whether statements can stay prepared, because no pooler shares the session.

    Not after another statement of a transaction: a missing plan would abort it.
    """
    if not isinstance(connection, WatchedConnection) or connection.prologue is None or not connection.autocommit:
        return False
    if connection.info.transaction_status != TRANSACTION_STATUS_IDLE:
        return False
    if connection.keeps_plans is None:
        connection.keeps_plans = is_our_session(connection)
    return connection.keeps_plans


def is_our_session(connection: PgConnection) -> bool:
    """Return whether no pooler shares the session: whether its server process is the one that we connected to."""
    [(pid,)] = fetch_tuples(connection, "SELECT pg_backend_pid()", {})
    return bool(pid == connection.info.backend_pid)
