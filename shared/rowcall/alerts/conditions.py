"""The conditions: each finds the subjects for which an alert is active now, with the figures that its message needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

from rowcall import definitions, effects
from rowcall.base.database import Connection, fetch_all
from rowcall.base.durations import duration_words
from rowcall.job_types.alerting import CALL_PING_URL, SEND_INCIDENTS
from rowcall.queue import vacuum, workers
from rowcall.queue.claims.lanes import LANES
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.lease import UNBEGUN
from rowcall.status import FAILURES, Event, Status, sources_of, sql_list


class Alert(StrEnum):
    """The alerts; each tells its receivers about one problem."""

    RUN_DIED = "run_died"
    RUN_OVERDUE = "run_overdue"
    TYPE_UNSERVED = "type_unserved"
    ATTEMPTS_FAILING = "attempts_failing"
    EFFECT_UNKNOWN = "effect_unknown"
    TICK_SILENT = "tick_silent"
    TABLE_BLOATED = "table_bloated"
    VACUUM_HELD_BACK = "vacuum_held_back"
    TEST = "test"


class Active(NamedTuple):
    """An alert that is active now; `details` are JSON."""

    alert: Alert
    subject: str
    details: Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """The limits of the conditions, in seconds, and the app that checks.

    `due` is how long a due run may wait; a worker is gone after `silence` without a heartbeat.
    """

    due: float
    silence: float
    app: str = ""


# How many dead runs, or queues, a message names.
NAMED_MOST = 5

# How many failed attempts are examined for deaths, so that the check stays cheap while very many fail.
EXAMINED_MOST = 200_000

# How many subjects of one alert become incidents; with more of them, more messages would not help.
SUBJECTS_MOST = 100

# Uses job_attempts_failed, for the latest attempts of the hour, as in the view of dead runs.  A run that was retried
# since is not dead.  Runs that tell receivers are left out: an alert about them would go the same way.  So are types
# whose own app checks and tells its own receivers.
DIED = f"""
SELECT run.job_type, count(DISTINCT run.id)::integer AS runs,
    (array_agg(DISTINCT run.id ORDER BY run.id DESC))[:{NAMED_MOST}] AS run_ids
FROM (
    SELECT run_id, outcome FROM rowcall.job_attempts
    WHERE ended_at > now() - interval '1 hour' AND outcome IN {sql_list(FAILURES)}
    ORDER BY ended_at DESC LIMIT {EXAMINED_MOST}
) AS lately CROSS JOIN LATERAL (
    SELECT id, job_type, status FROM rowcall.job_runs WHERE id = lately.run_id OFFSET 0
) AS run
WHERE lately.outcome <> '{Event.FAIL}' AND run.status = '{Status.DEAD}' AND run.job_type <> '{SEND_INCIDENTS.name}'
    AND NOT EXISTS (
        SELECT FROM rowcall.alert_checks AS other
        WHERE other.app <> %(app)s AND other.checked_at > now() - interval '2 minutes'
            AND run.job_type = ANY(other.own_types)
    )
GROUP BY run.job_type ORDER BY run.job_type
"""

# The first run of each lane that is due and that nobody performs, from job_runs_live.  A paused queue is included,
# because a pause can be forgotten, and so is a run that was handed over, because its consumers may be gone.
OVERDUE = f"""
WITH RECURSIVE {LANES}, first AS (
    SELECT lanes.queue, run.* FROM lanes CROSS JOIN LATERAL (
        SELECT id, job_type, run_at, {UNBEGUN} AS handed_over FROM rowcall.job_runs AS run
        WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority
            AND run_at <= now() - %(due)s * interval '1 second' AND (status IN {sources_of(Event.CLAIM)} OR {UNBEGUN})
        ORDER BY run_at, id LIMIT 1
    ) AS run
)
SELECT DISTINCT ON (first.queue) first.queue, first.id, first.job_type, first.run_at, first.handed_over,
    queues.paused_at, queues.max_running
FROM first LEFT JOIN rowcall.queues ON queues.name = first.queue
ORDER BY first.queue, first.run_at, first.id
"""

# A type fails if at least this many attempts of 15 minutes failed, and half of all.  Primary key.
FAILED_LEAST = 10
FAILING = f"""
SELECT job_type, sum(failed + dead)::integer AS failed, sum(succeeded + failed + dead)::integer AS ended
FROM rowcall.run_counts
WHERE minute > now() - interval '15 minutes' AND job_type NOT IN ('{SEND_INCIDENTS.name}', '{CALL_PING_URL.name}')
GROUP BY job_type
HAVING sum(failed + dead) >= {FAILED_LEAST} AND 2 * sum(failed + dead) >= sum(succeeded + failed + dead)
ORDER BY job_type
"""


def _died(connection: Connection, limits: Limits) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for row in fetch_all(connection, BY_INDEX + DIED, {"app": limits.app}):
        yield row["job_type"], {"runs": row["runs"], "run_ids": row["run_ids"]}


def _overdue(connection: Connection, limits: Limits) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for row in fetch_all(connection, BY_INDEX + OVERDUE, {"due": limits.due}):
        yield (
            row["queue"],
            {
                "run_id": row["id"],
                "job_type": row["job_type"],
                "due_since": row["run_at"].isoformat(),
                "paused": row["paused_at"] is not None,
                "closed": row["max_running"] == 0,
                "handed_over": bool(row["handed_over"]),
            },
        )


def _unserved(connection: Connection, limits: Limits) -> Iterator[tuple[str, Mapping[str, Any]]]:
    waiting = workers.unserved(connection, limits.silence)
    abandoned = workers.abandoned(connection, limits.silence)
    for job_type in dict.fromkeys(row["job_type"] for row in (*waiting, *abandoned)):
        queues = sorted({row["queue"] for row in (*waiting, *abandoned) if row["job_type"] == job_type})
        yield (
            job_type,
            {
                "waiting": sum(row["waiting"] for row in waiting if row["job_type"] == job_type),
                "abandoned": sum(row["abandoned"] for row in abandoned if row["job_type"] == job_type),
                "queues": len(queues),
                "first_queues": queues[:NAMED_MOST],
            },
        )


def _failing(connection: Connection, _: Limits) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for row in fetch_all(connection, FAILING):
        yield row["job_type"], {"failed": row["failed"], "ended": row["ended"]}


def _unknown(connection: Connection, _: Limits) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for kind, unknown in effects.count_unknown(connection).items():
        if unknown:
            yield kind, {"effects": unknown}


def _silent(connection: Connection, _: Limits) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the silence if no worker has ticked for too long.

    A worker checks before its own tick, so the first worker after a silence finds it; the others may still be silent.
    No tick was recorded before the workers first started, which is not a silence.
    """
    last = definitions.last_tick(connection)
    if last["silent"] and last["worker"] is not None:
        yield "", {"since": last["ticked_at"].isoformat()}


def _bloated(connection: Connection, _: Limits) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for row in vacuum.bloated(connection):
        yield row["name"], {"dead": row["dead"], "live": row["live"]}


def _held_back(connection: Connection, _: Limits) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for row in vacuum.holding_back(connection):
        began = row["query_started_at"]
        yield (
            row["who"],
            {
                "since": duration_words(row["since"]) if row["since"] else None,
                "query_started_at": began and began.isoformat(),
                "remedy": row["remedy"],
            },
        )


Condition = Callable[[Connection, Limits], Iterator[tuple[str, Mapping[str, Any]]]]

CONDITIONS: Mapping[Alert, Condition] = {
    Alert.RUN_DIED: _died,
    Alert.RUN_OVERDUE: _overdue,
    Alert.TYPE_UNSERVED: _unserved,
    Alert.ATTEMPTS_FAILING: _failing,
    Alert.EFFECT_UNKNOWN: _unknown,
    Alert.TICK_SILENT: _silent,
    Alert.TABLE_BLOATED: _bloated,
    Alert.VACUUM_HELD_BACK: _held_back,
}


def true_now(connection: Connection, alerts: frozenset[Alert], limits: Limits) -> list[Active]:
    """Return what is active now among these alerts, for at most SUBJECTS_MOST subjects of each."""
    return [
        Active(alert, subject, details)
        for alert, condition in CONDITIONS.items()
        if alert in alerts
        for subject, details in islice(condition(connection, limits), SUBJECTS_MOST)
    ]
