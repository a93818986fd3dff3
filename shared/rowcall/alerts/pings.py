"""Pings: tell external services every minute that Rowcall works, and when a definition's runs begin and end.

A ping is itself a run, so it tests all that a run needs: a tick, an enqueue, a claim, a handler and a finish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rowcall.alerts.intervals import Interval
from rowcall.base.database import Connection, PgConnection, Row, fetch_all, fetch_value
from rowcall.base.logs import LogEvent, log
from rowcall.base.settings import Settings
from rowcall.job_types.alerting import CALL_PING_URL, PingEvent
from rowcall.job_types.declaration import PRIORITY_FIRST
from rowcall.queue import enqueue_many
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.workers import SILENCE_SECONDS
from rowcall.status import FINAL, Status, sql_list

# A little less than a minute, so that a worker that cron starts each minute is never a moment too early.  A time in the
# future was written while the clock was wrong.
ASK = """
INSERT INTO rowcall.pings (definition_id, asked_at) VALUES (0, now())
ON CONFLICT (definition_id) DO UPDATE SET asked_at = now()
WHERE coalesce(pings.asked_at, '-infinity') NOT BETWEEN now() - interval '55 seconds' AND now()
RETURNING definition_id
"""

# How long the switch is still called after a ping last finished: long enough for a ping to be tried again.
WELL = "interval '5 minutes'"

# `app` is the app whose alerts must be checked; NULL if it has no receivers of alerts.
IS_WELL = f"""
SELECT pings.finished_at BETWEEN now() - {WELL} AND now()
    AND schedule_ticks.ticked_at BETWEEN now() - interval '{SILENCE_SECONDS} seconds' AND now()
    AND (%(app)s::text IS NULL OR alert_checks.checked_at BETWEEN now() - {WELL} AND now())
FROM rowcall.schedule_ticks
LEFT JOIN rowcall.pings ON pings.definition_id = 0 LEFT JOIN rowcall.alert_checks ON alert_checks.app = %(app)s
"""

# Runs in the transaction that finishes the ping: if the finish is refused, so is this.  The run of the previous ping of
# the switch, or of the same definition, is no longer needed.
FINISHED = f"""
WITH before AS (
    SELECT run_id FROM rowcall.pings WHERE definition_id = %(definition_id)s
), deleted AS (
    DELETE FROM rowcall.job_runs USING before
    WHERE job_runs.id = before.run_id AND job_runs.id <> %(run_id)s AND job_runs.status = '{Status.SUCCEEDED}'
)
INSERT INTO rowcall.pings (definition_id, finished_at, run_id) VALUES (%(definition_id)s, now(), %(run_id)s)
ON CONFLICT (definition_id) DO UPDATE SET finished_at = now(), run_id = %(run_id)s
"""

# How many of the newest runs of a definition are looked at.
RECENT_MOST = 20

# For each definition, the newest run that has begun and the newest that has ended, unless they were already reported.
# An end before the last change of the definition is not reported.  Uses job_definitions_pinged and job_runs_occurrence.
# Of two workers, the second waits for the row, and then finds nothing new.
NEWS = f"""
WITH newest AS MATERIALIZED (
    SELECT definition.id AS definition_id, begun.id AS begun_id, ended.id AS ended_id, ended.status,
        begun.id::text AS begun, ended.id || '/' || ended.lease_no || '/' || ended.status AS ended
    FROM rowcall.job_definitions AS definition
    LEFT JOIN LATERAL (
        SELECT id FROM (
            SELECT id, scheduled_for, started_at, finished_at FROM rowcall.job_runs
            WHERE definition_id = definition.id ORDER BY scheduled_for DESC LIMIT {RECENT_MOST}
        ) AS recent WHERE finished_at IS NULL AND started_at IS NOT NULL ORDER BY scheduled_for DESC LIMIT 1
    ) AS begun ON true
    LEFT JOIN LATERAL (
        SELECT id, lease_no, status FROM (
            SELECT id, lease_no, status, scheduled_for, finished_at FROM rowcall.job_runs
            WHERE definition_id = definition.id ORDER BY scheduled_for DESC LIMIT {RECENT_MOST}
        ) AS recent
        WHERE status IN {sql_list(FINAL)} AND finished_at >= definition.updated_at
        ORDER BY scheduled_for DESC LIMIT 1
    ) AS ended ON true
    WHERE definition.ping_url IS NOT NULL AND definition.removed_at IS NULL
), told AS (
    INSERT INTO rowcall.pings (definition_id, begun, ended)
    SELECT definition_id, begun, ended FROM newest WHERE begun IS NOT NULL OR ended IS NOT NULL
    ON CONFLICT (definition_id) DO UPDATE
    SET begun = coalesce(excluded.begun, pings.begun), ended = coalesce(excluded.ended, pings.ended)
    WHERE coalesce(excluded.begun <> coalesce(pings.begun, ''), false)
        OR coalesce(excluded.ended <> coalesce(pings.ended, ''), false)
    RETURNING definition_id
)
SELECT newest.definition_id, newest.begun_id, newest.ended_id, newest.status,
    coalesce(newest.begun <> coalesce(before.begun, ''), false) AS has_begun,
    coalesce(newest.ended <> coalesce(before.ended, ''), false) AS has_ended
FROM told JOIN newest USING (definition_id) LEFT JOIN rowcall.pings AS before USING (definition_id)
ORDER BY newest.definition_id
"""

PING_URL = "SELECT ping_url FROM rowcall.job_definitions WHERE id = %(definition_id)s AND removed_at IS NULL"


def _refused(error: str) -> None:
    log().error(LogEvent.PINGS_REFUSED, error=error)


@dataclass
class Pings:
    """Enqueues the pings that are due; `alive` says whether this process has the URL of a dead man's switch."""

    alive: bool
    interval: Interval

    @classmethod
    def of(cls, settings: Settings, pause: float) -> Pings:
        """The pings of a process with these settings, checked every `pause` seconds."""
        return cls(settings.ping_url is not None, Interval(pause, _refused))

    def check(self, connection: PgConnection) -> None:
        """Enqueue what is due; what the database refuses must not hold up the schedules."""
        if self.interval.is_over():
            with self.interval.checking(connection):
                self._check(connection)

    def _check(self, connection: Connection) -> None:
        due = [_of(row, event) for row in fetch_all(connection, BY_INDEX + NEWS) for event in _events(row)]
        if self.alive and fetch_all(connection, ASK):
            due.append({"event": PingEvent.ALIVE})
        if due:
            enqueue_many(connection, CALL_PING_URL, due, priority=PRIORITY_FIRST, created_by="alerts")


def _events(row: Row) -> list[PingEvent]:
    """Return an end before a start: if there are both, the run that ended is older than the one that started."""
    ended = [PingEvent.SUCCESS if row["status"] == Status.SUCCEEDED else PingEvent.FAIL] if row["has_ended"] else []
    return [*ended, *([PingEvent.START] if row["has_begun"] else [])]


def _of(row: Row, event: PingEvent) -> dict[str, Any]:
    run_id = row["begun_id" if event is PingEvent.START else "ended_id"]
    return {"event": event, "definition_id": row["definition_id"], "run_id": run_id}


def is_well(connection: Connection, app: str | None) -> bool:
    """Whether a ping has finished, a worker has ticked, and this app's alerts were checked, all of these recently."""
    return bool(fetch_value(connection, IS_WELL, {"app": app}))


def finished(connection: Connection, run_id: int, definition_id: int = 0) -> None:
    """Record, in the transaction of this ping's success, that it has finished; delete the previous ping."""
    fetch_all(connection, FINISHED, {"run_id": run_id, "definition_id": definition_id})


def ping_url(connection: Connection, definition_id: int) -> str | None:
    """Return the URL of a definition; None if it no longer has one."""
    url: str | None = fetch_value(connection, PING_URL, {"definition_id": definition_id})
    return url
