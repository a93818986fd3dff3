"""Moves time.  The database's clock cannot be set, so the timestamps in the tables are made older instead.

The dates of schedules do not move.  Instead, time can be moved to the next nominal time of a definition: it is
processed as a running worker would have processed it then, and its run becomes due.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from rowcall.base.database import PgConnection, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import RowcallError
from rowcall.definitions.store import get_definition
from rowcall.definitions.tick import decide_definition
from rowcall.job_types import Catalogue

# All timestamp columns, except dates of schedules, the rows in which workers report that they are alive, and the audit
# log, which is append-only.
COLUMNS = """
SELECT relname AS name, array_agg(attname::text) AS columns FROM pg_attribute
JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'rowcall'::regnamespace AND relkind IN ('r', 'p')
    AND atttypid = 'timestamptz'::regtype AND attnum > 0 AND NOT attisdropped AND attname <> 'scheduled_for'
    AND relname <> ALL('{job_definitions,schedule_occurrences,schedule_ticks,workers,audit_log}')
GROUP BY relname ORDER BY relname
"""

DECIDED = """
SELECT outcome, reason, run_id, run_at FROM rowcall.schedule_occurrences LEFT JOIN rowcall.job_runs ON id = run_id
WHERE schedule_occurrences.definition_id = %(definition_id)s AND nominal_at = %(nominal_at)s
"""

# The run's run_at is as much too late as the test has moved time.
DATE_TO_NOW = "UPDATE rowcall.job_runs SET run_at = run_at - %(moved)s WHERE id = %(run_id)s"

NOW = "SELECT now()"


def time_now(connection: PgConnection) -> datetime:
    """Return the time of the database's clock."""
    now: datetime = fetch_value(connection, NOW)
    return now


def move(connection: PgConnection, by: timedelta) -> None:
    """Let this much time pass."""
    for table in fetch_all(connection, COLUMNS):
        fetch_all(connection, _older(table["name"], table["columns"]), {"by": by})


def _older(table: str, columns: Sequence[str]) -> str:
    return f"UPDATE rowcall.{table} SET " + ", ".join(f"{column} = {column} - %(by)s" for column in columns)


def move_to(
    connection: PgConnection, catalogue: Catalogue, name: str, began: datetime, moved: timedelta
) -> tuple[int, timedelta]:
    """Let time pass until the next run of this definition is due; return its id and how much time passed.

    `moved` is how much time has been moved since the test `began`.
    """
    row = get_definition(connection, name)
    nominal = row["next_run_at"]
    if nominal is None:
        raise RowcallError(f"the definition {name!r} has no next nominal time, because it has no schedule")
    decided = decide_definition(connection, row, nominal, catalogue, bound=1, patience=timedelta(0))
    occurred = fetch_one(connection, DECIDED, {"definition_id": row["id"], "nominal_at": nominal})
    if occurred is None or occurred["run_id"] is None:
        reason = decided.refused if occurred is None else f"{occurred['outcome']}: {occurred['reason']}"
        raise RowcallError(
            f"the nominal time {nominal:%Y-%m-%d %H:%M %Z} of the definition {name!r} enqueued no run: {reason}"
        )
    fetch_all(connection, DATE_TO_NOW, {"run_id": occurred["run_id"], "moved": moved})
    by = max(occurred["run_at"] - (began + moved), timedelta(0))
    move(connection, by)
    return occurred["run_id"], by
