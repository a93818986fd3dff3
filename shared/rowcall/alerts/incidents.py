"""The statements of incidents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum

from rowcall.alerts.conditions import Active, Alert
from rowcall.base.database import Connection, Row, fetch_all, fetch_value

# All workers of an app together check this often.
CHECK_SECONDS = 30

# An incident ends when its alert's condition has not held for this long: an alert that comes and goes is reported once.
CALM = "interval '5 minutes'"

# The worker that gets its app's row does the check; the others wait for the row, and find that the check is done.  A
# time in the future was written while the clock was wrong.
TURN = f"""
INSERT INTO rowcall.alert_checks (app, checked_at, own_types) VALUES (%(app)s, now(), %(own_types)s::text[])
ON CONFLICT (app) DO UPDATE SET checked_at = now(), own_types = excluded.own_types
WHERE alert_checks.checked_at NOT BETWEEN now() - interval '{CHECK_SECONDS} seconds' AND now()
RETURNING app
"""

# An app that reports its own types also ends their incidents.
OF_ANOTHER_APP = """
    SELECT FROM rowcall.alert_checks AS other
    WHERE other.app <> %(app)s AND other.checked_at > now() - interval '2 minutes'"""

# Opens, continues and ends incidents; returns those that began, including tests, or ended.  A worker ends only the
# incidents that it reports: without receivers of all alerts, those of its own types.
CHANGED = f"""
WITH active AS (
    SELECT alert, subject, details
    FROM jsonb_to_recordset(%(active)s::jsonb) AS true_now(alert text, subject text, details jsonb)
), continued AS (
    UPDATE rowcall.incidents SET seen_at = now(), details = active.details FROM active
    WHERE incidents.ended_at IS NULL AND incidents.alert = active.alert AND incidents.subject = active.subject
), opened AS (
    INSERT INTO rowcall.incidents (alert, subject, details, seen_at) SELECT alert, subject, details, now() FROM active
    WHERE NOT EXISTS (
        SELECT FROM rowcall.incidents AS known
        WHERE known.ended_at IS NULL AND known.alert = active.alert AND known.subject = active.subject
    )
    ON CONFLICT DO NOTHING
    RETURNING id, alert, subject
), tests AS (
    UPDATE rowcall.incidents SET seen_at = now() WHERE ended_at IS NULL AND seen_at IS NULL
    RETURNING id, alert, subject
), ended AS (
    UPDATE rowcall.incidents SET ended_at = now()
    WHERE ended_at IS NULL AND alert = ANY(%(checked)s::text[]) AND seen_at NOT BETWEEN now() - {CALM} AND now()
        AND (alert = '{Alert.TEST}' OR %(only_types)s::text[] IS NULL OR subject = ANY(%(only_types)s::text[]))
        AND NOT EXISTS (
            SELECT FROM active WHERE active.alert = incidents.alert AND active.subject = incidents.subject
        ) AND NOT EXISTS (
            {OF_ANOTHER_APP}
                AND incidents.alert = '{Alert.RUN_DIED}' AND incidents.subject = ANY(other.own_types)
        )
    RETURNING id, alert, subject
)
SELECT id, alert, subject, 'opened' AS change FROM opened
UNION ALL SELECT id, alert, subject, 'opened' FROM tests
UNION ALL SELECT id, alert, subject, 'ended' FROM ended
ORDER BY id
"""

# Open ones first, then the newest.  There are few.
LIST = """
SELECT id, alert, subject, details, opened_at, ended_at, seen_at IS NOT NULL AS told FROM rowcall.incidents
WHERE ended_at IS NULL OR NOT %(only_open)s ORDER BY ended_at IS NOT NULL, opened_at DESC, id DESC LIMIT %(limit)s
"""

# Primary key.
READ = """
SELECT id, alert, subject, details, opened_at, ended_at, current_database() AS database FROM rowcall.incidents
WHERE id = ANY(%(ids)s::bigint[]) ORDER BY id
"""

# Primary key.  The runs that an incident names, as far as they exist and are dead.
DEAD_RUNS = """
SELECT id, job_type, error_type, last_error, finished_at FROM rowcall.job_runs
WHERE id = ANY(%(ids)s::bigint[]) AND status = 'dead' AND pruned_at IS NULL ORDER BY id DESC
"""

# With the time, so that a test can follow another one that is still open.
TEST = """
INSERT INTO rowcall.incidents (alert, subject, details)
VALUES ('test', %(who)s || ' at ' || to_char(clock_timestamp() AT TIME ZONE 'UTC', 'HH24:MI:SS.US') || ' UTC', '{}')
RETURNING id
"""


class Change(StrEnum):
    """What happened to an incident."""

    OPENED = "opened"
    ENDED = "ended"


def takes_turn(connection: Connection, app: str, own_types: Sequence[str]) -> bool:
    """Whether it is this worker's turn to check for its app; the row stays locked until the transaction ends."""
    return bool(fetch_all(connection, TURN, {"app": app, "own_types": list(own_types)}))


def changed(
    connection: Connection,
    active: Sequence[Active],
    checked: Iterable[Alert],
    app: str = "",
    only_types: Sequence[str] | None = None,
) -> list[Row]:
    """Open, continue and end incidents, given what is active now among the `checked` alerts; return what changed."""
    sent = json.dumps([one._asdict() for one in active])
    wanted = None if only_types is None else list(only_types)
    values = {"active": sent, "checked": [*checked, Alert.TEST], "app": app, "only_types": wanted}
    return fetch_all(connection, CHANGED, values)


def list_incidents(connection: Connection, limit: int, only_open: bool = False) -> list[Row]:
    """Return the open incidents, and then those that ended."""
    return fetch_all(connection, LIST, {"limit": limit, "only_open": only_open})


def incidents(connection: Connection, ids: Sequence[int]) -> list[Row]:
    """Return these incidents, each with the name of the database."""
    return fetch_all(connection, READ, {"ids": list(ids)})


def dead_runs(connection: Connection, ids: Sequence[int]) -> list[Row]:
    """Return the runs among these that are still dead, the newest first."""
    return fetch_all(connection, DEAD_RUNS, {"ids": list(ids)})


def begin_test(connection: Connection, who: str) -> int:
    """Open a test incident, which sends a message to all receivers."""
    begun: int = fetch_value(connection, TEST, {"who": who})
    return begun
