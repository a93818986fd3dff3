"""Which requests the standby answers, how a caller sees its own writes, and what responses say about their age.

`@standby_may_answer` marks what may be a little old: lists, counts, charts and metrics.  All else is read from the
leader: single runs, definitions and so on, which a caller often reads right after it has written them; keys and
sessions, which must end at once; and what explains why a run waits now.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

import flask
import psycopg2
import sqlalchemy
from psycopg2.errors import QueryCanceled

from rowcall.base.database.wal import UNREACHABLE, leader_position
from rowcall.base.errors import DatabaseUnreachable, RightsMissing, RowcallError, SchemaMismatch
from rowcall.base.watched import InternalConnection
from rowcall_api.http import database
from rowcall_api.standby.positions import MOST_SECONDS
from rowcall_api.standby.standby import Standby, StandbyUnfit

Asked = ParamSpec("Asked")
Found = TypeVar("Found")

# Key in the application's extensions.
STANDBY = "standby"

# The attribute of a view that the standby may answer.
MARK = "standby_may_answer"

# The response header of an answer of the standby: how old it is, in seconds.
AGE = "Rowcall-Age"

# The response header of a write, which a caller may send with later requests in order to see the write, and the
# browser's cookie that does the same.
POSITION = "Rowcall-Position"
POSITION_COOKIE = "rowcall_position"

# After this time, every answer of the standby includes the write.
POSITION_SECONDS = math.ceil(MOST_SECONDS) + 1

# At most 18 digits, so that it is a bigint.
POSITION_FORM = re.compile("[0-9]{1,18}", re.ASCII)

READS = ("GET", "HEAD", "OPTIONS")

# Errors of the standby that the leader may not have.
STANDBYS_OWN = (StandbyUnfit, DatabaseUnreachable, SchemaMismatch, RightsMissing, psycopg2.Error)


@dataclass(frozen=True)
class Reading:
    """The reads of one request on the standby: what they must include, and how old they may be."""

    standby: Standby
    position: int
    seconds: float

    @contextmanager
    def transaction(self, pool: sqlalchemy.Engine | None = None) -> Iterator[InternalConnection]:
        """Open a transaction on the standby; raise StandbyUnfit if it cannot answer this request.

        A statement that takes too long is no fault of the standby, and a screen leaves a gap for it.
        """
        try:
            with self.standby.transaction(pool or self.standby.pool) as (connection, replayed, age):
                if replayed < self.position:
                    raise StandbyUnfit("it has not replayed the caller's last write yet")
                if age > self.seconds:
                    raise StandbyUnfit(f"it is more than {self.seconds:g} s behind")
                flask.g.age = max(age, flask.g.get("age", 0.0))
                yield connection
        except STANDBYS_OWN as error:
            if isinstance(error.__cause__, QueryCanceled):
                raise
            self.standby.suspect(error)
            raise StandbyUnfit(str(error)) from error


def register(app: flask.Flask, standby: Standby) -> None:
    """Let this standby answer the views that are marked, and say how old its answers are."""
    app.extensions[STANDBY] = standby
    app.before_request(standby.watch)
    app.after_request(_say_age)
    app.after_request(_say_position)


def standby_may_answer(view: Callable[Asked, Found]) -> Callable[Asked, Found]:
    """Let the standby answer this view, and the leader if the standby cannot.

    Put it above the other decorators of a route: the view is called again for the leader, with arguments read anew.
    """

    @wraps(view)
    def answered(*args: Asked.args, **kwargs: Asked.kwargs) -> Found:
        flask.g.source = _source()
        if flask.g.source is None:
            return view(*args, **kwargs)
        try:
            return view(*args, **kwargs)
        except STANDBYS_OWN:
            flask.g.source = None
            flask.g.pop("age", None)
        return view(*args, **kwargs)

    answered.__dict__[MARK] = True
    return answered


def _source() -> Reading | None:
    """Return where this request may read instead of the leader."""
    standby: Standby | None = flask.current_app.extensions.get(STANDBY)
    asked = flask.request.cache_control
    if standby is None or standby.away is not None or asked.no_cache:
        return None
    most = MOST_SECONDS if asked.max_age is None else min(asked.max_age, MOST_SECONDS)
    return Reading(standby, _position_sent(), most)


def _position_sent() -> int:
    """Return what the standby must have replayed; what is not a position is one that no standby reaches."""
    sent = flask.request.headers.get(POSITION) or flask.request.cookies.get(POSITION_COOKIE) or "0"
    return int(sent) if POSITION_FORM.fullmatch(sent) else UNREACHABLE


def position_written(response: flask.Response) -> int | None:
    """Return the leader's position after a write of this request; None if it wrote nothing, or there is no standby."""
    if STANDBY not in flask.current_app.extensions or flask.request.method in READS or response.status_code >= 400:
        return None
    if "position" not in flask.g:
        flask.g.position = UNREACHABLE  # the caller reads from the leader if its position cannot be read
        with suppress(RowcallError, psycopg2.Error), database.statement() as connection:
            flask.g.position = leader_position(connection)["position"]
    position: int = flask.g.position
    return position


def _say_age(response: flask.Response) -> flask.Response:
    """Say how old an answer of the standby is, rounded up."""
    if (age := flask.g.get("age")) is not None:
        response.headers[AGE] = f"{math.ceil(age * 10) / 10:.1f}"
    return response


def _say_position(response: flask.Response) -> flask.Response:
    """Say what a standby must have replayed to show this write."""
    if (position := position_written(response)) is not None:
        response.headers[POSITION] = str(position)
    return response
