"""Tick: nominal times that have come are decided, and each becomes one row; cron only wakes this.

Any number of workers may tick at once.  A definition is one transaction: its row is locked, its nominal times up to now
are decided, runs and occurrences are written, and `next_run_at` moves on to what is not decided yet.  Whoever is killed
between leaves it as it was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg2

from rowcall.base.database import Connection, PgConnection, Row, all_or_nothing, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import RowcallError, RunInvalid, ScheduleInvalid
from rowcall.definitions.content import Content
from rowcall.job_types import Catalogue, JobType
from rowcall.queue.wake import WAKE
from rowcall.queue.workers import SILENCE_SECONDS
from rowcall.schedule import Decision, Outcome, Overlap, decide
from rowcall.status import Status

# Cron wakes each minute, and a deploy takes a moment: what is enqueued within this of its time was in time.
PUNCTUAL = timedelta(seconds=120)

# An edit, a pause and a resume decide what came before them; what a week of sleep left of a schedule of every minute.
SETTLED_MOST = 10_080

# The first definition that has something to decide and that nobody is deciding.  A type that this process does not know
# may be known to a newer one beside it.
DUE = """
SELECT *, now() AS decided_at FROM rowcall.job_definitions
WHERE next_run_at <= now() AND job_type = ANY(%(job_types)s::text[]) AND id <> ALL(%(tried)s::bigint[])
ORDER BY next_run_at, id LIMIT 1
FOR UPDATE SKIP LOCKED
"""

# job_runs_definition_live.
LIVE = "SELECT id FROM rowcall.job_runs WHERE definition_id = %(definition_id)s AND finished_at IS NULL LIMIT 1"

# Reads as: of what was decided, what is new; its runs; and a row for each occurrence.
#
# new   An occurrence that was decided before stays as it was decided, whatever the clock or an edit did meanwhile.
# runs  A key that another run has already keeps the occurrence from becoming a second run of one business fact.
OCCUR = f"""
WITH new AS (
    SELECT * FROM unnest(
        %(nominal_at)s::timestamptz[], %(outcome)s::text[], %(reason)s::text[], %(run_at)s::timestamptz[],
        %(payload)s::jsonb[], %(key)s::text[], %(fingerprint)s::text[]
    ) AS decided(nominal_at, outcome, reason, run_at, payload, key, fingerprint)
    WHERE NOT EXISTS (
        SELECT FROM rowcall.schedule_occurrences AS known
        WHERE known.definition_id = %(definition_id)s AND known.nominal_at = decided.nominal_at
    )
), runs AS (
    INSERT INTO rowcall.job_runs (definition_id, scheduled_for, job_type, payload, queue, priority, run_at,
        max_attempts, idempotency_key, request_fingerprint, created_by, status)
    SELECT %(definition_id)s, nominal_at, %(job_type)s, payload, %(queue)s, %(priority)s, run_at, %(max_attempts)s,
        key, fingerprint, %(created_by)s, '{Status.QUEUED}'
    FROM new WHERE outcome = '{Outcome.ENQUEUED}' ORDER BY nominal_at
    ON CONFLICT DO NOTHING
    RETURNING id, scheduled_for, CASE WHEN run_at <= now() THEN {WAKE} END
)
INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, reason, revision, run_id)
SELECT %(definition_id)s, new.nominal_at,
    CASE WHEN new.outcome = '{Outcome.ENQUEUED}' AND runs.id IS NULL THEN '{Outcome.SKIPPED}' ELSE new.outcome END,
    CASE WHEN new.outcome = '{Outcome.ENQUEUED}' AND runs.id IS NULL THEN 'another run has the key ' || new.key
         ELSE new.reason END,
    %(revision)s, runs.id
FROM new LEFT JOIN runs ON runs.scheduled_for = new.nominal_at
ON CONFLICT (definition_id, nominal_at) DO NOTHING
RETURNING outcome
"""

# What is the matter with one definition, and not with the database.
UNDECIDABLE = (RowcallError, psycopg2.DataError, psycopg2.IntegrityError)

COLUMNS = ("nominal_at", "outcome", "reason", "run_at", "payload", "key", "fingerprint")

MOVE_ON = "UPDATE rowcall.job_definitions SET next_run_at = %(next_at)s WHERE id = %(definition_id)s"

# At most once in ten seconds: an idle database must not be written to by every worker every second.
BEAT = """
WITH before AS (
    SELECT ticked_at FROM rowcall.schedule_ticks WHERE ticked_at < now() - interval '10 seconds' FOR UPDATE SKIP LOCKED
)
UPDATE rowcall.schedule_ticks SET ticked_at = now(), worker = %(worker)s FROM before
RETURNING before.ticked_at AS before, now() AS after
"""

LAST_TICK = f"""
SELECT ticked_at, worker, ticked_at < now() - interval '{SILENCE_SECONDS} seconds'
    AND EXISTS (SELECT FROM rowcall.job_definitions WHERE next_run_at IS NOT NULL) AS silent
FROM rowcall.schedule_ticks
"""

# What ticks leave lying although they come: a type that no worker knows, or a definition that cannot be decided.
UNDECIDED = f"""
SELECT name, job_type, next_run_at FROM rowcall.job_definitions
WHERE next_run_at < now() - interval '{SILENCE_SECONDS} seconds' ORDER BY next_run_at, name LIMIT 20
"""

NEXT_DUE = """
SELECT extract(epoch FROM min(next_run_at) - clock_timestamp())::float8 FROM rowcall.job_definitions
WHERE next_run_at IS NOT NULL AND job_type = ANY(%(job_types)s::text[])
"""

# Not now(), which is the time at which the transaction began.
CLOCK = "SELECT clock_timestamp()"


@dataclass(frozen=True)
class Broken:
    """A definition that could not be decided, and why; it is left as it was, for somebody to mend."""

    name: str
    revision: int
    error: str


@dataclass(frozen=True)
class Ticked:
    """What one tick did: outcome -> how many; and the seconds until something is to be decided, if ever.

    `slept_since` is set by the first tick after a silence: when the one before it was.
    """

    decided: Mapping[Outcome, int]
    broken: Sequence[Broken]
    next_in: float | None
    slept_since: datetime | None


def tick(connection: PgConnection, worker: str, catalogue: Catalogue, bound: int) -> Ticked:
    """Decide what has come: of every definition `bound` nominal times at most, each in a transaction of its own."""
    counts = dict.fromkeys(Outcome, 0)
    broken: list[Broken] = []
    tried: list[int] = []
    known: dict[str, Any] = {"job_types": list(catalogue), "tried": tried}
    due: Row | None = {}
    while due is not None:
        try:
            with all_or_nothing(connection):
                due = fetch_one(connection, DUE, known)
                if due is not None:
                    tried.append(due["id"])
                    for outcome in decide_definition(connection, due, due["decided_at"], catalogue, bound):
                        counts[outcome] += 1
        except UNDECIDABLE as error:
            assert due, "only deciding one raises these"
            broken.append(Broken(due["name"], due["revision"], str(error)))
    beaten = fetch_one(connection, BEAT, {"worker": worker})
    slept = beaten and (beaten["after"] - beaten["before"]).total_seconds() > SILENCE_SECONDS
    next_in = fetch_value(connection, NEXT_DUE, known)
    return Ticked(counts, broken, next_in, beaten["before"] if beaten and slept else None)


def settle(connection: Connection, row: Row, catalogue: Catalogue, now: datetime) -> None:
    """Decide what has come of one definition, whose row the caller has locked, before its content or state changes."""
    due = row["next_run_at"] is not None and row["next_run_at"] <= now
    if due and row["job_type"] in catalogue:
        # What cannot be decided must not keep the change out that mends it.
        with suppress(*UNDECIDABLE), all_or_nothing(connection):
            decide_definition(connection, row, now, catalogue, SETTLED_MOST)


def decide_definition(
    connection: Connection, row: Row, now: datetime, catalogue: Catalogue, bound: int
) -> list[Outcome]:
    """Decide nominal times of one locked definition, and write down what was decided."""
    content = Content.of(row)
    rule = content.rule(row["name"], paused=row["paused_at"] is not None)
    known = {"definition_id": row["id"]}
    if rule is None:
        fetch_all(connection, MOVE_ON, {**known, "next_at": None})
        return []
    live = fetch_value(connection, LIVE, known) if rule.overlap is Overlap.SKIP else None
    decided = decide(rule, row["next_run_at"], now, punctual=PUNCTUAL, bound=bound, live=live)
    outcomes = _write(connection, row, content, catalogue[content.job_type], decided.decisions)
    fetch_all(connection, MOVE_ON, {**known, "next_at": decided.next_at})
    return outcomes


def _write(
    connection: Connection, row: Row, content: Content, kind: JobType, decisions: Sequence[Decision]
) -> list[Outcome]:
    """Write occurrences and their runs in one statement."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for decision in decisions:
        told, run = _with_run(decision, content, kind)
        values = (told.nominal, told.outcome, told.reason, told.run_at, *run)
        for name, value in zip(COLUMNS, values, strict=True):
            columns[name].append(value)
    options = {
        "definition_id": row["id"],
        "revision": row["revision"],
        **content.options(kind),
        "created_by": f"schedule:{row['name']}",
    }
    return [Outcome(one["outcome"]) for one in fetch_all(connection, OCCUR, {**options, **columns})]


def _with_run(decision: Decision, content: Content, kind: JobType) -> tuple[Decision, tuple[str | None, ...]]:
    """The decision, and payload, key and fingerprint of its run.

    What the type refuses (its schema has changed since the definition was kept) is missed, and says why.
    """
    if decision.outcome is not Outcome.ENQUEUED:
        return decision, (None, None, None)
    try:
        run = content.prepared(kind, decision.nominal)
    except (RunInvalid, ScheduleInvalid) as error:
        refused = f"{kind.name} refuses the payload: {error}"[:1000]
        return dataclasses.replace(decision, outcome=Outcome.MISSED, reason=refused, run_at=None), (None, None, None)
    return decision, (run.payload, run.key, run.fingerprint)


def last_tick(connection: Connection) -> Row:
    """When a tick last went well, by which worker, and whether that was too long ago for what is scheduled."""
    row = fetch_one(connection, LAST_TICK)
    assert row is not None, "the migration makes the row, and nobody deletes it"
    return row


def undecided(connection: Connection) -> list[Row]:
    """Definitions whose nominal time came a while ago and that no tick has decided."""
    return fetch_all(connection, UNDECIDED)


def clock(connection: Connection) -> datetime:
    """The database's time at this moment, also in a transaction that has waited for a lock."""
    moment: datetime = fetch_value(connection, CLOCK)
    return moment
