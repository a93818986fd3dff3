"""Definitions for tests: stored like any others, and moved into the past so that no test waits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.definitions import Content, checked, put
from rowcall.job_types import catalogue

OPERATOR = Operator("somebody", "request-1")


def kept(connection: Connection, name: str = "sleeper", **content: Any) -> Row:
    """Store a definition of the type noop, hourly by default."""
    told = {"job_type": "noop", "schedule": "0 * * * *", **content}
    return put(connection, name, checked(name, told, catalogue()), catalogue(), "api", OPERATOR).row


def hourly_but_not_now(connection: Connection) -> str:
    """Return an hourly schedule whose next time is half an hour away, so that no time comes during a test."""
    return f"{(now_is(connection).minute + 30) % 60} * * * *"


def minutely_but_not_now(connection: Connection) -> str:
    """Return a schedule for each minute except in this hour and the next, so that no time comes during a test."""
    this = now_is(connection).astimezone(UTC).hour
    hours = sorted((this + ahead) % 24 for ahead in range(2, 24))
    return f"* {','.join(map(str, hours))} * * *"


def asleep_since(connection: Connection, row: Row, ago: str) -> datetime:
    """Set its next time as if the last tick had been `ago` (an interval)."""
    return move(connection, row, fetch_value(connection, "SELECT now() - %(ago)s::interval", {"ago": ago}))


def move(connection: Connection, row: Row, start: datetime) -> datetime:
    """Set its next time as if the last tick had been at `start`."""
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
    """Return its occurrences, the first one first."""
    return fetch_all(
        connection,
        "SELECT * FROM rowcall.schedule_occurrences WHERE definition_id = %(id)s ORDER BY nominal_at",
        {"id": row["id"]},
    )


def runs_of(connection: Connection, row: Row) -> list[Row]:
    """Return its runs, in the order of their nominal times."""
    return fetch_all(
        connection,
        "SELECT * FROM rowcall.job_runs WHERE definition_id = %(id)s ORDER BY scheduled_for",
        {"id": row["id"]},
    )


def now_is(connection: Connection) -> datetime:
    """Return the transaction's time, which is the tick's."""
    now: datetime = fetch_value(connection, "SELECT now()")
    return now


def next_of(connection: Connection, row: Row) -> datetime | None:
    """Return its first nominal time that is not decided yet."""
    found = fetch_one(
        connection, "SELECT next_run_at FROM rowcall.job_definitions WHERE id = %(id)s", {"id": row["id"]}
    )
    assert found is not None
    due: datetime | None = found["next_run_at"]
    return due
