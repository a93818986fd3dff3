"""Definitions as tests need them: kept as anybody's, and moved into the past instead of waited for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.definitions import Content, checked, put
from rowcall.job_types import catalogue

OPERATOR = Operator("somebody", "request-1")


def kept(connection: Connection, name: str = "sleeper", **content: Any) -> Row:
    """A definition of the type noop, every hour, unless told otherwise."""
    told = {"job_type": "noop", "schedule": "0 * * * *", **content}
    return put(connection, name, checked(name, told, catalogue()), catalogue(), "api", OPERATOR).row


def hourly_but_not_now(connection: Connection) -> str:
    """A schedule with one time in each hour, and none within half an hour of now: none comes while a test runs."""
    return f"{(now_is(connection).minute + 30) % 60} * * * *"


def minutely_but_not_now(connection: Connection) -> str:
    """A schedule of each minute of 22 hours of the day: not in this hour and the next, so none comes meanwhile."""
    this = now_is(connection).astimezone(UTC).hour
    hours = sorted((this + ahead) % 24 for ahead in range(2, 24))
    return f"* {','.join(map(str, hours))} * * *"


def asleep_since(connection: Connection, row: Row, ago: str) -> datetime:
    """As if the last tick had been `ago` (an interval): the first nominal time since then is not decided yet."""
    return move(connection, row, fetch_value(connection, "SELECT now() - %(ago)s::interval", {"ago": ago}))


def move(connection: Connection, row: Row, start: datetime) -> datetime:
    """As if the last tick had been at `start`."""
    times = Content.of(row).times()
    assert times is not None
    first = times.next_after(start)
    assert first is not None
    fetch_all(
        connection,
        "UPDATE rowcall.job_definitions SET next_run_at = %(first)s WHERE id = %(id)s",
        {"first": first, "id": row["id"]},
    )
    return first


def occurred(connection: Connection, row: Row) -> list[Row]:
    """What became of its nominal times, the first one first."""
    return fetch_all(
        connection,
        "SELECT * FROM rowcall.schedule_occurrences WHERE definition_id = %(id)s ORDER BY nominal_at",
        {"id": row["id"]},
    )


def runs_of(connection: Connection, row: Row) -> list[Row]:
    """Its runs, in the order of their nominal times."""
    return fetch_all(
        connection,
        "SELECT * FROM rowcall.job_runs WHERE definition_id = %(id)s ORDER BY scheduled_for",
        {"id": row["id"]},
    )


def now_is(connection: Connection) -> datetime:
    """The transaction's time, which is the tick's."""
    now: datetime = fetch_value(connection, "SELECT now()")
    return now


def next_of(connection: Connection, row: Row) -> datetime | None:
    """Its first nominal time that is not decided yet."""
    found = fetch_one(
        connection, "SELECT next_run_at FROM rowcall.job_definitions WHERE id = %(id)s", {"id": row["id"]}
    )
    assert found is not None
    due: datetime | None = found["next_run_at"]
    return due
