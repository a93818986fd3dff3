"""Prepared statements: planning is most of the cost of statements that a worker repeats."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeGuard

from psycopg2.errors import DuplicatePreparedStatement, FeatureNotSupported, InvalidSqlStatementName
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from rowcall.base.database import PgConnection, fetch_tuples
from rowcall.base.watched import InternalConnection

# What a text sets for its transaction, before the statement itself.
SETTINGS = re.compile(r"(?:SET LOCAL [^;]+;\s*)*")

PARAMETER = re.compile(r"%\((\w+)\)s")

# One plan for all parameters, from the first time on: these statements reach their rows in the same way whatever is
# asked for.  By default PostgreSQL would plan five times more, and then compare.
ONE_PLAN = "SET LOCAL plan_cache_mode = force_generic_plan;"

# The session does not have the plan, has one that we did not make, or the types of its answer have changed.
PLAN_IS_GONE = (InvalidSqlStatementName, DuplicatePreparedStatement, FeatureNotSupported)


@dataclass(frozen=True)
class Prepared:
    """One text in the forms in which it is sent: as it is, with its plan to be kept, and to be carried out again."""

    name: str
    first: str
    again: str

    @classmethod
    @cache
    def of(cls, text: str) -> Prepared:
        """The name is made from the text: in every session, of every release, it stands for the same statement."""
        found = SETTINGS.match(text)
        assert found
        settings, statement = ONE_PLAN + found[0], text[found.end() :]
        names = list(dict.fromkeys(PARAMETER.findall(statement)))
        numbered = PARAMETER.sub(lambda name: f"${names.index(name[1]) + 1}", statement)
        name = f"rowcall_{hashlib.sha256(numbered.encode()).hexdigest()[:16]}"
        execute = f"EXECUTE {name} ({', '.join(f'%({name})s' for name in names)})"
        return cls(name, f"{settings} PREPARE {name} AS {numbered}; {execute}", f"{settings} {execute}")


def fetch_prepared(connection: PgConnection, sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a statement in its own transaction; it is prepared if the session is not shared by a pooler."""
    if not _keeps_plans(connection):
        return fetch_tuples(connection, sql, parameters)
    prepared = Prepared.of(sql)
    text = prepared.again
    if prepared.name not in connection.plans:
        # Noted before it is sent: a statement that fails stays prepared.
        text, connection.plans = prepared.first, connection.plans | {prepared.name}
    try:
        return fetch_tuples(connection, text, parameters)
    except PLAN_IS_GONE:
        connection.keeps_plans = False
        return fetch_tuples(connection, sql, parameters)


def _keeps_plans(connection: PgConnection) -> TypeGuard[InternalConnection]:
    """Whether the session is ours alone.

    Not within a transaction of several statements, because a plan that is gone would end it.
    """
    if not isinstance(connection, InternalConnection) or not connection.autocommit:
        return False
    if connection.info.transaction_status != TRANSACTION_STATUS_IDLE:
        return False
    if connection.keeps_plans is None:
        connection.keeps_plans = is_our_session(connection)
    return connection.keeps_plans


def is_our_session(connection: PgConnection) -> bool:
    """Whether no pooler lends us the session: then its process is the one that we connected to."""
    [(pid,)] = fetch_tuples(connection, "SELECT pg_backend_pid()", {})
    return bool(pid == connection.info.backend_pid)
