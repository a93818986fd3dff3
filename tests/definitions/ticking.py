"""Tick, and return what was decided."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from rowcall.base.database import PgConnection, Row
from rowcall.definitions import Ticked, tick
from rowcall.job_types import catalogue
from tests.definitions.keeping import occurred

HOUR = timedelta(hours=1)

BOUND = 500


def ticked(connection: PgConnection, bound: int = BOUND) -> Ticked:
    return tick(connection, "worker-1", catalogue(), bound)


def outcomes(connection: PgConnection, row: Row) -> Counter[str]:
    return Counter(one["outcome"] for one in occurred(connection, row))


def hours_before(moment: datetime, hours: int) -> list[datetime]:
    """Return the last full hours up to this time, the first one first."""
    last = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return [last - HOUR * back for back in reversed(range(hours))]
