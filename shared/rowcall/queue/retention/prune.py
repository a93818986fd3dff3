"""Prune: what has ended long ago goes, a page at a time; of a run with a key the bare row stays, to answer a replay.

A walk goes through the runs in the order in which they were asked for, a page after the other.  A page is looked at
first and taken afterwards, so that its rows can be written to a file between: what changed meanwhile is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rowcall.base.database import Connection, fetch_all, fetch_one, fetch_value
from rowcall.job_types import catalogue
from rowcall.queue.fragments import BY_INDEX

# A row as it was read: whoever changes one writes updated_at, and no clock's time zone stands in its epoch.
SEEN = "run.id || '/' || extract(epoch FROM run.updated_at)"

# How many days this run is kept after its end: as its type and status have it, else as its status has it.
DAYS = "coalesce(%(types)s::jsonb -> page.job_type ->> page.status, %(days)s::jsonb ->> page.status)::float8"

# What is read in an index's order, and no further than a page, must not be gathered and sorted: statistics that are old
# by a million rows would have the planner read all that is behind the page too.
IN_ORDER = f"{BY_INDEX} SET LOCAL enable_bitmapscan = off;"

# One range of job_runs_created, no longer than a page however few of its rows are due.  A run is never older than its
# request, so nothing is due beyond the shortest time that anything is kept.  Only what has ended has a finished_at.
PAGE = f"""{IN_ORDER}
WITH page AS MATERIALIZED (
    SELECT run.id, run.created_at, run.job_type, run.status, run.finished_at, {SEEN} AS seen,
        run.pruned_at IS NOT NULL AS bare, run.pruned_at IS NULL AND run.idempotency_key IS NOT NULL AS stays
    FROM rowcall.job_runs AS run
    WHERE (run.created_at, run.id) > (%(after_created_at)s::timestamptz, %(after_id)s::bigint)
        AND run.created_at < now() - %(shortest)s * interval '24 hours'
    ORDER BY run.created_at, run.id LIMIT %(batch)s
), last AS (
    SELECT created_at, id FROM page ORDER BY created_at DESC, id DESC LIMIT 1
), due AS (
    SELECT id, seen, stays FROM page
    WHERE finished_at < now() - {DAYS} * interval '24 hours' AND bare = %(bare)s
)
SELECT last.created_at, last.id, (SELECT count(*) FROM page) AS looked_at,
    extract(epoch FROM now() - %(shortest)s * interval '24 hours' - last.created_at)::float8 AS seconds_left,
    (SELECT count(*) FROM due WHERE stays) AS stay,
    (SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM due) AS due,
    (SELECT coalesce(array_agg(seen ORDER BY id), '{{}}') FROM due) AS seen
FROM last
"""

AS_SEEN = f"run.id = ANY(%(due)s::bigint[]) AND {SEEN} = ANY(%(seen)s::text[])"

# Rows that somebody holds are skipped, as a claim skips them; the next walk meets them again.  A bare row goes, and one
# without a key goes too (its attempts go with it); of another the payload goes and everything that tells of its end
# but how it ended, and the key stays, with the fingerprint by which a replay is told from other content.
TAKE = f"""{BY_INDEX}
WITH taken AS MATERIALIZED (
    SELECT id, idempotency_key IS NULL OR pruned_at IS NOT NULL AS goes FROM rowcall.job_runs AS run
    WHERE {AS_SEEN} AND run.finished_at IS NOT NULL
    FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM rowcall.job_runs WHERE id = ANY(ARRAY(SELECT id FROM taken WHERE goes)) RETURNING id
), made_bare AS (
    UPDATE rowcall.job_runs
    SET payload = '{{}}', result = NULL, progress = NULL, last_error = NULL, last_stack = NULL, trace_parent = NULL,
        pruned_at = now(), updated_at = now()
    WHERE id = ANY(ARRAY(SELECT id FROM taken WHERE NOT goes)) RETURNING id
), history AS (
    DELETE FROM rowcall.job_attempts WHERE run_id = ANY(ARRAY(SELECT id FROM made_bare))
)
SELECT (SELECT count(*) FROM deleted) AS deleted, (SELECT count(*) FROM made_bare) AS made_bare
"""

# A run as JSON, with everything that is known of it; times in UTC, whatever the session's zone.
WHOLE = f"""{BY_INDEX} SET LOCAL TIME ZONE 'UTC';
SELECT (to_jsonb(run) || jsonb_build_object('attempts_ended', (
    SELECT coalesce(jsonb_agg(to_jsonb(ended) - 'run_id' ORDER BY ended.lease_no), '[]')
    FROM rowcall.job_attempts AS ended WHERE ended.run_id = run.id
)))::text AS line
FROM rowcall.job_runs AS run WHERE {AS_SEEN}
ORDER BY run.id
"""

# The oldest of each definition, by the primary key.  Its last one stays, so that a schedule of once a year can still
# tell of it; the tick needs none, because next_run_at never goes back.
_OLD = """
FROM rowcall.schedule_occurrences
WHERE definition_id = definition.id AND nominal_at < least(now() - %(keep_days)s * interval '24 hours', (
    SELECT max(nominal_at) FROM rowcall.schedule_occurrences WHERE definition_id = definition.id
))"""

DELETE_OCCURRENCES = f"""{IN_ORDER}
WITH deleted AS (
    DELETE FROM rowcall.schedule_occurrences WHERE ctid = ANY(ARRAY(
        SELECT old.place FROM rowcall.job_definitions AS definition CROSS JOIN LATERAL (
            SELECT ctid AS place {_OLD} ORDER BY nominal_at LIMIT %(batch)s FOR UPDATE SKIP LOCKED
        ) AS old LIMIT %(batch)s
    )) RETURNING 1
)
SELECT count(*) AS deleted FROM deleted
"""

COUNT_OCCURRENCES = f"SELECT sum((SELECT count(*) {_OLD}))::bigint FROM rowcall.job_definitions AS definition"

POLICY = """
SELECT payload FROM rowcall.job_definitions WHERE name = %(job_type)s AND job_type = %(job_type)s AND removed_at IS NULL
"""

# How many runs with all that is known of them are held in memory at a time.
SLICE = 100

# Where a walk has come to: when the last run it looked at was asked for, and that run's id.
Place: TypeAlias = tuple[str, int]
BEGINNING: Place = ("-infinity", 0)


@dataclass(frozen=True)
class Retention:
    """For how many days a run is kept after its end: by status, and by type and status where that is another time."""

    days: Mapping[str, float]
    types: Mapping[str, Mapping[str, float]]

    def parameters(self) -> dict[str, Any]:
        """As PAGE takes it."""
        all_days = [*self.days.values(), *(days for kind in self.types.values() for days in kind.values())]
        types = {name: dict(days) for name, days in self.types.items()}
        return {"days": json.dumps(dict(self.days)), "types": json.dumps(types), "shortest": min(all_days)}


@dataclass(frozen=True)
class Page:
    """Some runs in a row: how many were looked at, where the next page begins, and which of them are due.

    `seen` tells of those that are due how each was read; `stay` is how many of them are left with their key.
    `seconds_left` is from the last one's request to that of the youngest that may be due.
    """

    looked_at: int
    last: Place
    seconds_left: float
    due: Sequence[int]
    seen: Sequence[str]
    stay: int


def look(connection: Connection, retention: Retention, after: Place, batch: int, bare: bool) -> Page | None:
    """The next page of a walk; None at its end.  Due are runs with their details, or else the bare rows of others."""
    place = {"after_created_at": after[0], "after_id": after[1], "batch": batch, "bare": bare}
    row = fetch_one(connection, PAGE, {**retention.parameters(), **place})
    if row is None:
        return None
    last = row["created_at"].isoformat(), row["id"]
    return Page(row["looked_at"], last, row["seconds_left"], row["due"], row["seen"], row["stay"])


def whole(connection: Connection, page: Page) -> Iterator[str]:
    """The runs that are due, with all that is known of each, as JSON; but for those that have changed meanwhile."""
    for start in range(0, len(page.due), SLICE):
        some = {"due": page.due[start : start + SLICE], "seen": page.seen[start : start + SLICE]}
        yield from (row["line"] for row in fetch_all(connection, WHOLE, some))


def take(connection: Connection, page: Page) -> dict[str, int]:
    """Delete the runs that are due, or leave the bare row of each that has a key; how many of either.

    What has changed since it was looked at, or is held by somebody, is left as it is.
    """
    if not page.due:
        return {"deleted": 0, "made_bare": 0}
    taken = fetch_one(connection, TAKE, {"due": page.due, "seen": page.seen})
    assert taken is not None
    return taken


def would_take(page: Page) -> dict[str, int]:
    """What `take` would answer if nothing had changed."""
    return {"deleted": len(page.due) - page.stay, "made_bare": page.stay}


def delete_occurrences(connection: Connection, days: float, batch: int) -> int:
    """Delete occurrences whose nominal time is so long past; how many."""
    deleted: int = fetch_value(connection, DELETE_OCCURRENCES, {"keep_days": days, "batch": batch})
    return deleted


def count_occurrences(connection: Connection, days: float) -> int:
    """How many there are to delete."""
    return fetch_value(connection, COUNT_OCCURRENCES, {"keep_days": days}) or 0


def policy_of(connection: Connection, job_type: str) -> dict[str, Any]:
    """The payload of the definition that has this type's name, which schedules it; without one, what is built in."""
    return catalogue()[job_type].checked(fetch_value(connection, POLICY, {"job_type": job_type}) or {})
