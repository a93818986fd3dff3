"""Prune: delete old finished runs page by page; a run with a key keeps its bare row, to answer a replay.

Pages follow the order in which runs were created. A page is read first and deleted later, so that it can be archived in
between; a run that changes meanwhile is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rowcall.base.database import Connection, fetch_all, fetch_one, fetch_value
from rowcall.job_types import catalogue
from rowcall.queue.fragments import BY_INDEX, IN_ORDER
from rowcall.queue.retention.archive import INTO_TABLE, make_months

# The version of a row: every change writes updated_at, and its epoch does not depend on a time zone.
VERSION = "run.id || '/' || extract(epoch FROM run.updated_at)"

# How many days this run is kept after it finished: by its type and status, else by its status.
DAYS = "coalesce(%(types)s::jsonb -> page.job_type ->> page.status, %(days)s::jsonb ->> page.status)::float8"

# Whether a request for this run can be repeated: it holds its natural key, or an idempotency key belongs to it.
HAS_A_KEY = """(
    coalesce(run.held_key, run.idempotency_key) IS NOT NULL
    OR EXISTS (SELECT FROM rowcall.request_keys WHERE request_keys.run_id = run.id)
)"""

# Reads one range of the primary key, no longer than a page even if few of its rows are due.  No run finishes before it
# is inserted, so neither a run that is newer than the shortest retention nor one with a higher id is due.  But the
# clock may have been set back, so only a whole page of newer runs ends a walk.  Only finished runs have a finished_at.
PAGE = f"""{IN_ORDER}
WITH page AS MATERIALIZED (
    SELECT run.id, run.created_at, run.job_type, run.status, run.finished_at, {VERSION} AS version,
        run.pruned_at IS NOT NULL AS bare,
        run.pruned_at IS NULL AND {HAS_A_KEY} AS stays
    FROM (
        SELECT * FROM rowcall.job_runs WHERE id > %(after_id)s::bigint ORDER BY id LIMIT %(batch)s
    ) AS run
    WHERE run.created_at < now() - %(shortest)s * interval '24 hours'
), last AS (
    SELECT created_at, id FROM page ORDER BY id DESC LIMIT 1
), due AS (
    SELECT id, version, stays FROM page
    WHERE finished_at < now() - {DAYS} * interval '24 hours' AND bare = %(bare)s
)
SELECT last.created_at, last.id, (SELECT count(*) FROM page) AS looked_at,
    extract(epoch FROM now() - %(shortest)s * interval '24 hours' - last.created_at)::float8 AS seconds_left,
    (SELECT count(*) FROM due WHERE stays) AS stay,
    (SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM due) AS due,
    (SELECT coalesce(array_agg(version ORDER BY id), '{{}}') FROM due) AS versions
FROM last
"""

IS_UNCHANGED = f"run.id = ANY(%(due)s::bigint[]) AND {VERSION} = ANY(%(versions)s::text[])"

# The changes to a run whose row stays: its payload and its details are deleted.
EMPTIED = """payload = '{}', result = NULL, progress = NULL, last_error = NULL, last_stack = NULL,
        trace_parent = NULL, pruned_at = now(), updated_at = now()"""

# Locked rows are skipped; the next walk reads them again.
_PRUNED = f"""pruned AS MATERIALIZED (
    SELECT run.id, NOT {HAS_A_KEY} OR run.pruned_at IS NOT NULL AS goes FROM rowcall.job_runs AS run
    WHERE {IS_UNCHANGED} AND run.finished_at IS NOT NULL
    FOR UPDATE SKIP LOCKED
)"""

# A bare row, and a run that has no key or no longer holds it, are deleted with their attempts.  Any other run loses its
# payload and its details; its status stays, and so do its keys with the fingerprints that distinguish a replay from
# different content.  Triggers delete the lines of both, and the further idempotency keys of those that are deleted.
_GONE = f"""deleted AS (
    DELETE FROM rowcall.job_runs WHERE id = ANY(ARRAY(SELECT id FROM pruned WHERE goes)) RETURNING id
), made_bare AS (
    UPDATE rowcall.job_runs SET {EMPTIED} WHERE id = ANY(ARRAY(SELECT id FROM pruned WHERE NOT goes)) RETURNING id
), history AS (
    DELETE FROM rowcall.job_attempts WHERE run_id = ANY(ARRAY(SELECT id FROM made_bare))
)"""

_COUNTED = "(SELECT count(*) FROM deleted) AS deleted, (SELECT count(*) FROM made_bare) AS made_bare"

PRUNE = f"""{BY_INDEX}
WITH {_PRUNED}, {_GONE}
SELECT {_COUNTED}
"""

# All parts of the statement see the runs as they were before it.
PRUNE_TO_TABLE = f"""{BY_INDEX}
WITH {_PRUNED}, kept AS ({INTO_TABLE}
    RETURNING 1
), {_GONE}
SELECT {_COUNTED}, (SELECT count(*) FROM kept) AS archived
"""

# A run as one JSON object with all its columns, attempts and log; times in UTC, whatever the session's zone.
ARCHIVED = f"""{BY_INDEX} SET LOCAL TIME ZONE 'UTC';
SELECT (to_jsonb(run) || jsonb_build_object('attempts_ended', (
    SELECT coalesce(jsonb_agg(to_jsonb(ended) - 'run_id' ORDER BY ended.lease_no), '[]')
    FROM rowcall.job_attempts AS ended WHERE ended.run_id = run.id
), 'log', (
    SELECT coalesce(jsonb_agg(to_jsonb(logged) - '{{run_id,lease_line_no}}'::text[] ORDER BY logged.line_no), '[]')
    FROM rowcall.run_logs AS logged WHERE logged.run_id = run.id
)))::text AS line
FROM rowcall.job_runs AS run WHERE {IS_UNCHANGED}
ORDER BY run.id
"""

# The oldest occurrences of each definition, by the primary key.  The last one stays, so that a yearly schedule still
# shows it; the tick needs none, because next_run_at never goes back.
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

# Primary key.
DELETE_INCIDENTS = """
WITH deleted AS (
    DELETE FROM rowcall.incidents WHERE id = ANY(ARRAY(
        SELECT id FROM rowcall.incidents WHERE ended_at < now() - interval '90 days' ORDER BY id LIMIT %(batch)s
        FOR UPDATE SKIP LOCKED
    )) RETURNING 1
)
SELECT count(*) AS deleted FROM deleted
"""

# Operations that have been inactive for long enough, with their refusals.  Their audit rows stay.
DELETE_OPERATIONS = """
DELETE FROM rowcall.operations
WHERE status NOT IN ('canary', 'running') AND updated_at < now() - %(keep_days)s * interval '24 hours'
"""

POLICY = """
SELECT payload FROM rowcall.job_definitions WHERE name = %(job_type)s AND job_type = %(job_type)s AND removed_at IS NULL
"""

# How many complete runs are in memory at a time.
SLICE = 100

# The position of a walk: the last run that it read.  Only older versions, which may continue a walk, need its time.
Place: TypeAlias = tuple[str, int]
BEGINNING: Place = ("-infinity", 0)


@dataclass(frozen=True)
class Retention:
    """How many days to keep a run after it finished: by status, and by type and status where that differs."""

    days: Mapping[str, float]
    types: Mapping[str, Mapping[str, float]]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of PAGE."""
        all_days = [*self.days.values(), *(days for by_status in self.types.values() for days in by_status.values())]
        types = {name: dict(days) for name, days in self.types.items()}
        return {"days": json.dumps(dict(self.days)), "types": json.dumps(types), "shortest": min(all_days)}


@dataclass(frozen=True)
class Page:
    """A page of consecutive runs: how many were read, where the next page begins, and which are due.

    `versions` are the versions of the due runs when they were read; `stay` is how many of them keep their key.
    `seconds_left` is the time from the creation of the last run to that of the newest run that may be due.
    """

    looked_at: int
    last: Place
    seconds_left: float
    due: Sequence[int]
    versions: Sequence[str]
    stay: int


def read_page(connection: Connection, retention: Retention, after: Place, batch: int, bare: bool) -> Page | None:
    """Return the next page of a walk, or None at its end; `bare` selects the bare rows of pruned runs."""
    place = {"after_id": after[1], "batch": batch, "bare": bare}
    row = fetch_one(connection, PAGE, {**retention.parameters(), **place})
    if row is None:
        return None
    last = row["created_at"].isoformat(), row["id"]
    return Page(row["looked_at"], last, row["seconds_left"], row["due"], row["versions"], row["stay"])


def archived(connection: Connection, page: Page) -> Iterator[str]:
    """Yield the due runs as lines of JSON, except those that have changed since they were read."""
    for start in range(0, len(page.due), SLICE):
        part = {"due": page.due[start : start + SLICE], "versions": page.versions[start : start + SLICE]}
        yield from (row["line"] for row in fetch_all(connection, ARCHIVED, part))


def prune_page(connection: Connection, page: Page, to_table: bool = False) -> dict[str, int]:
    """Delete the due runs, or reduce those with a key to a bare row; return both counts.

    A run that has changed since it was read, or that is locked, is skipped.  `to_table` archives the runs in the
    same statement, and adds their count.
    """
    if not page.due:
        return {"deleted": 0, "made_bare": 0}
    if to_table:
        make_months(connection, page.due)
    statement = PRUNE_TO_TABLE if to_table else PRUNE
    counts = fetch_one(connection, statement, {"due": page.due, "versions": page.versions})
    assert counts is not None
    return counts


def would_prune(page: Page, archives: bool) -> dict[str, int]:
    """Return what pruning would count if nothing had changed."""
    archived = len(page.due) if archives else 0
    return {"deleted": len(page.due) - page.stay, "made_bare": page.stay, "archived": archived}


def delete_occurrences(connection: Connection, days: float, batch: int) -> int:
    """Delete at most `batch` occurrences whose nominal time is older than this many days; return how many."""
    deleted: int = fetch_value(connection, DELETE_OCCURRENCES, {"keep_days": days, "batch": batch})
    return deleted


def count_occurrences(connection: Connection, days: float) -> int:
    """Return how many occurrences are older than this many days and would be deleted."""
    return fetch_value(connection, COUNT_OCCURRENCES, {"keep_days": days}) or 0


def delete_operations(connection: Connection, days: float) -> None:
    """Delete the operations that nobody has changed for this many days."""
    fetch_all(connection, DELETE_OPERATIONS, {"keep_days": days})


def delete_incidents(connection: Connection, batch: int) -> int:
    """Delete at most `batch` incidents that ended long ago; return how many."""
    deleted: int = fetch_value(connection, IN_ORDER + DELETE_INCIDENTS, {"batch": batch})
    return deleted


def policy_of(connection: Connection, job_type: str) -> dict[str, Any]:
    """Return the payload of the definition that has this type's name and schedules it; without one, the defaults."""
    return catalogue()[job_type].checked(fetch_value(connection, POLICY, {"job_type": job_type}) or {})
