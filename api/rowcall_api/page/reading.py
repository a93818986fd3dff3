"""How screens read: on a small pool of their own, each part with a time limit, so that a slow part leaves a gap.

The API's other requests may hold all of its connections when an operator needs the page most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import flask
import sqlalchemy

from rowcall.base import clock
from rowcall.base.database import Connection, fetch_all
from rowcall.base.errors import DatabaseUnavailable
from rowcall_api.http.database import reachable

Found = TypeVar("Found")
Asked = ParamSpec("Asked")

# Key in the application's extensions.
POOL = "page_pool"

# Connections of each process of the API.
CONNECTIONS = 2

# How long one part of a screen may take, and all of its parts together.
PART_SECONDS = 2.0
SCREEN_SECONDS = 6.0

# Less than this is not worth a try.
LEAST_SECONDS = 0.1

LIMIT = "SELECT set_config('statement_timeout', %(milliseconds)s, true)"


@dataclass(frozen=True)
class Part(Generic[Found]):
    """A part of a screen, or why it is missing."""

    value: Found | None
    missing: str | None = None


def part(read: Callable[Concatenate[Connection, Asked], Found], *args: Asked.args, **kw: Asked.kwargs) -> Part[Found]:
    """Read one part of a screen in a transaction of its own; a part that takes too long is missing, not an error."""
    until = flask.g.setdefault("screen_until", clock.elapsed() + SCREEN_SECONDS)
    seconds = min(PART_SECONDS, until - clock.elapsed())
    if seconds < LEAST_SECONDS:
        return Part(None, "not read, because other parts of this screen took too long")
    try:
        return Part(_within(seconds, read, *args, **kw))
    except DatabaseUnavailable:
        return Part(None, f"the database did not answer this part within {seconds:.1g} s: load the page again")


def at_once(read: Callable[Concatenate[Connection, Asked], Found], *args: Asked.args, **kw: Asked.kwargs) -> Found:
    """Read what a screen cannot do without; raise DatabaseUnavailable if that takes too long."""
    return _within(PART_SECONDS, read, *args, **kw)


def _within(
    seconds: float,
    read: Callable[Concatenate[Connection, Asked], Found],
    *args: Asked.args,
    **kw: Asked.kwargs,
) -> Found:
    pool: sqlalchemy.Engine = flask.current_app.extensions[POOL]
    with reachable(pool, changes=False) as connection:
        limit: dict[str, Any] = {"milliseconds": str(round(seconds * 1000))}
        fetch_all(connection, LIMIT, limit)
        return read(connection, *args, **kw)
