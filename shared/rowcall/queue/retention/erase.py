"""Erase: delete the data of finished runs now, as pruning would later, because a person asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue.fragments import BY_INDEX, FROM_ALL_RUNS
from rowcall.queue.retention.prune import EMPTIED
from rowcall.queue.views.filters import Filter
from rowcall.queue.views.lists import SCANS, page_of, page_sql, parameters, scan_for

# How many runs one transaction erases.
BATCH = 500

# Scan -> a page of the runs that match, finished or not.
PAGES = {scan.name: page_sql(scan, "id, created_at, finished_at") for scan in SCANS}

BY_ID = f"""
SELECT DISTINCT id, created_at, finished_at {FROM_ALL_RUNS} WHERE id = ANY(%(run_ids)s::bigint[]) ORDER BY id
"""

# Status, times, keys and fingerprints stay, so that a late request with the same key does not run a second time.
# Locked runs are skipped, and so are runs that another transaction has changed since this statement began: it cannot
# see what pruning has just archived.  A trigger deletes the lines that the runs logged.  The audit log keeps who
# enqueued or cloned the run, but not the payload.  In the archive, a run loses the same columns, its attempts and its
# log.  An operation whose filter has a payload that matches such a run loses this part of its filter.  Without it, the
# filter would match other runs, so the operation ends.
ERASE = f"""{BY_INDEX}
WITH seen AS MATERIALIZED (
    SELECT id, updated_at FROM rowcall.job_runs WHERE id = ANY(%(run_ids)s::bigint[]) AND finished_at IS NOT NULL
), finished AS MATERIALIZED (
    SELECT run.id FROM seen JOIN rowcall.job_runs AS run ON run.id = seen.id AND run.updated_at = seen.updated_at
    FOR UPDATE OF run SKIP LOCKED
), archived AS MATERIALIZED (
    SELECT id, payload FROM rowcall.archived_runs WHERE id = ANY(%(run_ids)s::bigint[]) FOR UPDATE SKIP LOCKED
), erased_archived AS (
    UPDATE rowcall.archived_runs SET {EMPTIED}, attempts_ended = '[]', log = '[]'
    WHERE id = ANY(ARRAY(SELECT id FROM archived)) RETURNING id
), all_finished AS MATERIALIZED (
    SELECT id FROM finished UNION SELECT id FROM archived
), erased AS (
    UPDATE rowcall.job_runs SET {EMPTIED} WHERE id = ANY(ARRAY(SELECT id FROM finished)) RETURNING id
), history AS (
    DELETE FROM rowcall.job_attempts WHERE run_id = ANY(ARRAY(SELECT id FROM finished))
), unaudited AS (
    UPDATE rowcall.audit_log SET before = before - 'payload', after = after - 'payload'
    WHERE subject = 'run' AND subject_id = ANY(ARRAY(SELECT id FROM all_finished))
        AND (before ? 'payload' OR after ? 'payload')
), meant AS (
    UPDATE rowcall.operations SET filter = filter - 'payload', status = 'finished',
        finished_at = coalesce(finished_at, now()), updated_at = now()
    WHERE filter ? 'payload' AND EXISTS (
        SELECT FROM (
            SELECT payload FROM rowcall.job_runs WHERE id = ANY(ARRAY(SELECT id FROM finished))
            UNION ALL
            SELECT payload FROM archived
        ) AS run
        WHERE run.payload @> (operations.filter -> 'payload')
    )
    RETURNING id
), unaudited_operations AS (
    UPDATE rowcall.audit_log SET after = after - 'payload'
    WHERE subject = 'operation' AND subject_id = ANY(ARRAY(SELECT id FROM meant)) AND after ? 'payload'
), audited AS (
    INSERT INTO rowcall.audit_log (who, action, subject, subject_id, request_id)
    SELECT %(who)s, 'erase', 'run', id, %(request_id)s FROM all_finished ORDER BY id
)
SELECT id FROM erased UNION SELECT id FROM erased_archived ORDER BY id
"""


@dataclass(frozen=True)
class Found:
    """Runs to erase: those that have finished, those that have not, and the cursor of the next page."""

    finished: list[int]
    unfinished: list[int]
    next: str | None = None


def find(connection: Connection, criteria: Filter, cursor: str | None = None) -> Found:
    """Return the next page of the runs that match."""
    values = parameters(connection, criteria, BATCH, cursor, searches=False)
    page = page_of(connection, PAGES[scan_for(criteria).name], criteria, values)
    return _found(page.runs, page.next)


def find_ids(connection: Connection, run_ids: Sequence[int]) -> Found:
    """Return those of these runs that exist."""
    return _found(fetch_all(connection, BY_ID, {"run_ids": list(run_ids)}), None)


def erase(connection: Connection, run_ids: Sequence[int], operator: Operator) -> list[int]:
    """Erase the payload, result, progress, errors, attempts and log of finished runs; return their ids."""
    values = {"run_ids": list(run_ids), "who": operator.who, "request_id": operator.request_id}
    return [row["id"] for row in fetch_all(connection, ERASE, values)]


def _found(rows: Sequence[Row], cursor: str | None) -> Found:
    finished = [row["id"] for row in rows if row["finished_at"] is not None]
    return Found(finished, [row["id"] for row in rows if row["finished_at"] is None], cursor)
