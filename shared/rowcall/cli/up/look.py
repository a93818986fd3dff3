"""What the live view of `rowcall up` reads from the database, once a second."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import psycopg2

from rowcall import effects, queue
from rowcall.base.database import PgConnection, Row, committed, connect_internal, fetch_all
from rowcall.base.errors import DatabaseUnreachable
from rowcall.definitions import clock
from rowcall.queue import Filter
from rowcall.status import Status

# Along job_runs_created; only the newest thousand, so that it costs the same on any database.
COUNTS = """
SELECT status, count(*) AS runs FROM (
    SELECT status FROM rowcall.job_runs ORDER BY created_at DESC, id DESC LIMIT 1000
) AS newest GROUP BY status
"""

RUNS_MOST, FAILED_MOST, EFFECTS_MOST = 12, 3, 8


@dataclass(frozen=True)
class Seen:
    """What the database said: its time, how many runs have each status, some runs, and the newest effects.

    The runs are those that failed last, which come first, and the newest ones.
    """

    now: datetime
    counts: dict[str, int] = field(default_factory=dict)
    runs: list[Row] = field(default_factory=list)
    effects: list[Row] = field(default_factory=list)


class Look:
    """Looks at the database on one connection, which is replaced if it is lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: PgConnection | None = None

    def take(self) -> Seen | None:
        """Return what the database says; None if it does not answer."""
        try:
            if self._connection is None:
                self._connection = connect_internal(self._url, "rowcall up")
            with committed(self._connection):
                return _seen(self._connection)
        except (psycopg2.Error, DatabaseUnreachable):
            self.close()
            return None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _runs(connection: PgConnection) -> list[Row]:
    failed = queue.list_runs(connection, Filter((Status.FAILED, Status.DEAD)), FAILED_MOST).runs
    newest = queue.list_runs(connection, Filter(), RUNS_MOST).runs
    return [*failed, *(run for run in newest if run["id"] not in {one["id"] for one in failed})]


def _seen(connection: PgConnection) -> Seen:
    return Seen(
        clock(connection),
        {row["status"]: row["runs"] for row in fetch_all(connection, COUNTS)},
        _runs(connection),
        effects.page_of_effects(connection, None, (), EFFECTS_MOST).effects,
    )
