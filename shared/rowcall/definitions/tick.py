"""Tick: decide the outcome of each due nominal time, and record it as one row.

Any number of workers can tick at once.  Each definition has one transaction, which locks its row, processes its
nominal times up to now, writes runs and occurrences, and sets `next_run_at` to the first unprocessed time.  If a worker
is killed in between, nothing has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg2

from rowcall.base.database import Connection, PgConnection, Row, all_or_nothing, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import RowcallError, message_of
from rowcall.definitions.broken import Broken, Resting, breaking
from rowcall.definitions.content import Content
from rowcall.definitions.occurrences import Occurrence, with_runs
from rowcall.job_types import Catalogue, JobType
from rowcall.queue.fragments import WAKE
from rowcall.queue.workers import SILENCE_SECONDS
from rowcall.schedule import Outcome, Overlap, decide
from rowcall.status import Status

# A run that is enqueued within this time counts as punctual: cron starts a worker only once a minute, and a deploy
# takes some time.
PUNCTUAL = timedelta(seconds=120)

# A nominal time that is unprocessed for longer than this is overdue: every worker ticks more often.
LATE = timedelta(seconds=SILENCE_SECONDS)

# How long a nominal time is left to other workers if the job type refuses the payload: in a deploy, this process may
# have an older version of the type.
PATIENCE = timedelta(minutes=15)

# How many nominal times an edit, a pause or a resume processes at most: a week of a schedule that runs every minute.
SETTLED_MOST = 10_080

# Definitions that this process recently failed to process; an edit begins a new revision, which is tried at once.
RESTING = """(id, revision) IN (
        SELECT resting.id, resting.revision
        FROM unnest(%(resting_ids)s::bigint[], %(resting_revisions)s::integer[]) AS resting(id, revision)
    )"""

# The first definition that is due and not locked.  Unknown job types are left to newer processes.
DUE = f"""
SELECT *, now() AS decided_at FROM rowcall.job_definitions
WHERE next_run_at <= now() AND job_type = ANY(%(job_types)s::text[]) AND id <> ALL(%(tried)s::bigint[])
    AND NOT {RESTING}
ORDER BY next_run_at, id LIMIT 1
FOR UPDATE SKIP LOCKED
"""

# Uses the index job_runs_definition_live.
LIVE = "SELECT id FROM rowcall.job_runs WHERE definition_id = %(definition_id)s AND finished_at IS NULL LIMIT 1"

# Insert the new occurrences, with their runs.
#
# new   Excludes occurrences that already exist, for example because the clock was set back.
# runs  If another run holds the natural key, no second run is inserted for the same key.
OCCUR = f"""
WITH new AS (
    SELECT * FROM unnest(
        %(nominal_at)s::timestamptz[], %(outcome)s::text[], %(reason)s::text[], %(run_at)s::timestamptz[],
        %(payload)s::jsonb[], %(natural_key)s::text[], %(fingerprint)s::text[]
    ) AS decided(nominal_at, outcome, reason, run_at, payload, natural_key, fingerprint)
    WHERE NOT EXISTS (
        SELECT FROM rowcall.schedule_occurrences AS known
        WHERE known.definition_id = %(definition_id)s AND known.nominal_at = decided.nominal_at
    )
), runs AS (
    INSERT INTO rowcall.job_runs (definition_id, scheduled_for, job_type, payload, queue, priority, run_at,
        max_attempts, natural_key, unique_mode, content_fingerprint, created_by, status)
    SELECT %(definition_id)s, nominal_at, %(job_type)s, payload, %(queue)s, %(priority)s, run_at, %(max_attempts)s,
        natural_key, %(unique_mode)s, fingerprint, %(created_by)s, '{Status.QUEUED}'
    FROM new WHERE outcome = '{Outcome.ENQUEUED}' ORDER BY nominal_at
    ON CONFLICT DO NOTHING
    RETURNING id, scheduled_for, CASE WHEN run_at <= now() THEN {WAKE} END
)
INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, reason, revision, run_id)
SELECT %(definition_id)s, new.nominal_at,
    CASE WHEN new.outcome = '{Outcome.ENQUEUED}' AND runs.id IS NULL THEN '{Outcome.SKIPPED}' ELSE new.outcome END,
    CASE WHEN new.outcome = '{Outcome.ENQUEUED}' AND runs.id IS NULL
         THEN 'another run holds the natural key ' || new.natural_key ELSE new.reason END,
    %(revision)s, runs.id
FROM new LEFT JOIN runs ON runs.scheduled_for = new.nominal_at
ON CONFLICT (definition_id, nominal_at) DO NOTHING
RETURNING outcome
"""

# Errors that concern a single definition, not the whole database.
UNDECIDABLE = (RowcallError, psycopg2.DataError, psycopg2.IntegrityError)

MOVE_ON = "UPDATE rowcall.job_definitions SET next_run_at = %(next_at)s WHERE id = %(definition_id)s"

# Records the first tick, and then one at most every ten seconds, so that idle workers do not write every second.
BEAT = """
WITH before AS (
    SELECT ticked_at FROM rowcall.schedule_ticks WHERE worker IS NULL OR ticked_at < now() - interval '10 seconds'
    FOR UPDATE SKIP LOCKED
)
UPDATE rowcall.schedule_ticks SET ticked_at = now(), worker = %(worker)s FROM before
RETURNING before.ticked_at AS before, now() AS after
"""

# The last tick, and whether it was so long ago that no worker ticks, although there are schedules.
LAST_TICK = f"""
SELECT ticked_at, worker, ticked_at < now() - interval '{SILENCE_SECONDS} seconds'
    AND EXISTS (SELECT FROM rowcall.job_definitions WHERE next_run_at IS NOT NULL) AS silent
FROM rowcall.schedule_ticks
"""

# Definitions that stay overdue although workers tick: no worker knows the job type, or the definition is broken.
UNDECIDED = f"""
SELECT name, job_type, next_run_at FROM rowcall.job_definitions
WHERE next_run_at < now() - interval '{SILENCE_SECONDS} seconds' ORDER BY next_run_at, name LIMIT 20
"""

# The seconds until the next nominal time, without the definitions that this process recently failed to process.
NEXT_DUE = f"""
SELECT extract(epoch FROM min(next_run_at) - clock_timestamp())::float8 FROM rowcall.job_definitions
WHERE next_run_at IS NOT NULL AND job_type = ANY(%(job_types)s::text[]) AND NOT {RESTING}
"""

# Not now(), which is the time when the transaction began.
CLOCK = "SELECT clock_timestamp()"


@dataclass(frozen=True)
class Ticked:
    """What one tick did: the number of decisions by outcome, and the seconds until the next nominal time.

    After a gap without ticks, `slept_since` is the time of the last tick before the gap.  `recorded` says whether this
    is the one tick in ten seconds that was recorded, among those of all workers.
    """

    decided: Mapping[Outcome, int]
    broken: Sequence[Broken]
    next_in: float | None
    slept_since: datetime | None
    recorded: bool


@dataclass(frozen=True)
class Decided:
    """The decisions about one definition; `refused` says why a nominal time was left to another worker."""

    outcomes: Sequence[Outcome]
    refused: str | None = None


def tick(
    connection: PgConnection, worker: str, catalogue: Catalogue, bound: int, resting: Resting | None = None
) -> Ticked:
    """Decide the due nominal times, at most `bound` per definition, with one transaction for each definition.

    A caller that ticks repeatedly passes the same `resting` each time.
    """
    resting = Resting() if resting is None else resting
    counts = dict.fromkeys(Outcome, 0)
    broken: list[Broken] = []
    parameters: dict[str, Any] = {"job_types": list(catalogue), "tried": [], **_resting(resting)}
    due: Row | None = None
    while True:
        try:
            with all_or_nothing(connection):
                due = fetch_one(connection, DUE, parameters)
                if due is None:
                    break
                parameters["tried"].append(due["id"])
                decided = decide_definition(connection, due, due["decided_at"], catalogue, bound)
        except UNDECIDABLE as error:
            assert due, "only a definition raises these"
            decided = Decided([], message_of(error))
        for outcome in decided.outcomes:
            counts[outcome] += 1
        if decided.refused is not None:
            broken.append(Broken(due["name"], due["revision"], decided.refused))
            resting.add(due["id"], due["revision"])
    beat = fetch_one(connection, BEAT, {"worker": worker})
    slept = beat and (beat["after"] - beat["before"]).total_seconds() > SILENCE_SECONDS
    next_in = fetch_value(connection, NEXT_DUE, {**parameters, **_resting(resting)})
    return Ticked(counts, broken, next_in, beat["before"] if beat and slept else None, beat is not None)


def _resting(resting: Resting) -> dict[str, list[int]]:
    """Return the parameters of RESTING."""
    those = resting.now()
    return {"resting_ids": [which for which, _ in those], "resting_revisions": [revision for _, revision in those]}


def settle(connection: Connection, row: Row, catalogue: Catalogue, now: datetime) -> None:
    """Decide the due times of one locked definition before its content or state changes.

    No time is left to another worker, because the change would lose it.
    """
    due = row["next_run_at"] is not None and row["next_run_at"] <= now
    if due and row["job_type"] in catalogue:
        # A broken definition must not prevent the change that fixes it.
        with suppress(*UNDECIDABLE), all_or_nothing(connection):
            decide_definition(connection, row, now, catalogue, SETTLED_MOST, patience=timedelta(0))


def decide_definition(
    connection: Connection, row: Row, now: datetime, catalogue: Catalogue, bound: int, patience: timedelta = PATIENCE
) -> Decided:
    """Decide due nominal times of one locked definition, and record the decisions."""
    with breaking(row["name"]):
        content = Content.of(row)
        rule = content.rule(row["name"], paused=row["paused_at"] is not None)
    parameters = {"definition_id": row["id"]}
    if rule is None:
        fetch_all(connection, MOVE_ON, {**parameters, "next_at": None})
        return Decided([])
    live = fetch_value(connection, LIVE, parameters) if rule.overlap is Overlap.SKIP else None
    job_type = catalogue[content.job_type]
    with breaking(row["name"]):
        decided = decide(rule, row["next_run_at"], now, punctual=PUNCTUAL, bound=bound, live=live)
        written = with_runs(decided.decisions, content, job_type, patient_since=now - patience)
    outcomes = _write(connection, row, content, job_type, written.occurrences)
    next_at = decided.next_at if written.left is None else written.left
    fetch_all(connection, MOVE_ON, {**parameters, "next_at": next_at})
    return Decided(outcomes, written.refused)


def _write(
    connection: Connection, row: Row, content: Content, job_type: JobType, occurrences: Sequence[Occurrence]
) -> list[Outcome]:
    """Write occurrences and their runs in one statement."""
    columns = {name: [getattr(one, name) for one in occurrences] for name in Occurrence._fields}
    options = {
        "definition_id": row["id"],
        "revision": row["revision"],
        **content.options(job_type),
        "created_by": f"schedule:{row['name']}",
    }
    return [Outcome(one["outcome"]) for one in fetch_all(connection, OCCUR, {**options, **columns})]


def last_tick(connection: Connection) -> Row:
    """Return the time and the worker of the last tick, and whether it was too long ago."""
    row = fetch_one(connection, LAST_TICK)
    assert row is not None, "the migration inserts the row, and nothing deletes it"
    return row


def undecided(connection: Connection) -> list[Row]:
    """Return definitions that have an overdue, unprocessed nominal time."""
    return fetch_all(connection, UNDECIDED)


def overdue(row: Row, last: Row, now: datetime) -> str | None:
    """Return why this definition's nominal time is unprocessed; None if it is paused, or if the next tick is on time.

    `last` is the last tick, as `last_tick` returns it.  As long as no worker ticks, that alone is the cause.
    """
    due = row["next_run_at"]
    if due is None or due > now or row["paused_at"]:
        return None
    if last["worker"] is None:
        return "no worker has ever ticked"
    if now - last["ticked_at"] > LATE:
        return f"no worker has ticked since {last['ticked_at'].isoformat(sep=' ', timespec='seconds')}"
    if now - due > LATE:
        return (
            f"workers tick, and none has processed it: their ROWCALL_APP must have the job type {row['job_type']}; if"
            ' the definition is invalid, their logs say "schedule broken"'
        )
    return None


def clock(connection: Connection) -> datetime:
    """Return the database's current time, even in a transaction that has waited for a lock."""
    moment: datetime = fetch_value(connection, CLOCK)
    return moment
