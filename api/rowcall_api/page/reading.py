"""How screens read the database: on their own small pool, with a time limit per part; a slow part leaves a gap.

The API's other requests may hold all of its connections when an operator needs the page most.  Lists are read from the
standby, if there is one; if it cannot give a part, the screen is read again from the leader.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Concatenate, Generic, ParamSpec, TypeVar

import flask
import sqlalchemy

from rowcall.base import clock
from rowcall.base.database import Connection
from rowcall.base.database.pool import open_pool
from rowcall.base.errors import DatabaseUnavailable
from rowcall.base.watched import Answers, InternalConnection
from rowcall_api.http.database import reachable
from rowcall_api.standby.requests import Reading

Found = TypeVar("Found")
Asked = ParamSpec("Asked")

# Keys in the application's extensions.
POOL = "page_pool"
STANDBY_POOL = "page_standby_pool"

# Connections of each process of the API.
CONNECTIONS = 2

# How long one part of a screen may take, and all of its parts together.
PART_SECONDS = 2.0
SCREEN_SECONDS = 6.0

# Less than this is not worth a try.
LEAST_SECONDS = 0.1

# The server cancels a slow statement; if no answer arrives even then, the connection is lost.
ANSWER_SECONDS = 2 * PART_SECONDS

OTHERS_SLOW = "not read, because other parts of this screen took too long"


@dataclass(frozen=True)
class Part(Generic[Found]):
    """A part of a screen, or why it is missing."""

    value: Found | None
    missing: str | None = None


def pool(url: str, answers: Answers | None = None) -> sqlalchemy.Engine:
    """Return the pool on which screens are read, of the standby with its `answers`; it connects at the first screen."""
    return open_pool(url, CONNECTIONS, ANSWER_SECONDS, PART_SECONDS, answers, asks=answers is None)


def part(read: Callable[Concatenate[Connection, Asked], Found], *args: Asked.args, **kw: Asked.kwargs) -> Part[Found]:
    """Read one part of a screen in a transaction of its own; a part that takes too long is missing, not an error."""
    seconds = seconds_left()
    if seconds < LEAST_SECONDS:
        return Part(None, OTHERS_SLOW)
    try:
        return Part(_within(seconds, read, *args, **kw))
    except DatabaseUnavailable:
        return Part(None, f"the database did not return this part within {seconds:.1g} s: reload the page")


def at_once(read: Callable[Concatenate[Connection, Asked], Found], *args: Asked.args, **kw: Asked.kwargs) -> Found:
    """Read what a screen cannot do without; raise DatabaseUnavailable if that takes too long."""
    return _within(max(seconds_left(), LEAST_SECONDS), read, *args, **kw)


def seconds_left() -> float:
    """Return how long the next part may take."""
    until: float = flask.g.setdefault("screen_until", clock.elapsed() + SCREEN_SECONDS)
    return min(PART_SECONDS, until - clock.elapsed())


def _within(
    seconds: float,
    read: Callable[Concatenate[Connection, Asked], Found],
    *args: Asked.args,
    **kw: Asked.kwargs,
) -> Found:
    with _transaction() as connection:
        connection.before_each = partial(_limit, clock.elapsed() + seconds)
        try:
            return read(connection, *args, **kw)
        finally:
            connection.before_each = None


def _transaction() -> AbstractContextManager[InternalConnection]:
    source: Reading | None = flask.g.get("source")
    if source is not None:
        return source.transaction(flask.current_app.extensions[STANDBY_POOL])
    return reachable(flask.current_app.extensions[POOL], changes=False)


def _limit(until: float) -> str:
    """Limit each statement of a part to the time that is left."""
    left = until - clock.elapsed()
    if left <= 0:
        raise DatabaseUnavailable("the database is too slow at the moment: reload the page")
    return f"SET LOCAL statement_timeout = {max(1, round(left * 1000))}; "
