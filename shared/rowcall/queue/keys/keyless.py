"""Keyless: insert runs without any key, which need no comparison with other runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rowcall.base.database import Connection, all_or_nothing, fetch_all, fetch_value
from rowcall.base.database.portions import divided
from rowcall.queue.keys.insert import DUE_AT, IS_DUE

# The function inserts the run and wakes a worker, as ENQUEUE_MANY_KEYLESS does.  PostgreSQL keeps its plans.  Its text
# is in rowcall_migrations/inserting.py.
ENQUEUE_ONE_KEYLESS = """
SELECT rowcall.insert_run(
    %(job_type)s, %(payload)s::pg_catalog.jsonb, %(queue)s, (%(priority)s)::pg_catalog.int2,
    %(run_at)s::pg_catalog.timestamptz, %(max_attempts)s, %(unique_mode)s, %(key_owner)s, %(created_by)s,
    %(trace_parent)s
) AS id
"""

# No ON CONFLICT: it would look into every unique index before it inserts a row.  The payloads are one JSON array,
# because the server parses an SQL array of a thousand values one by one.  Ids are assigned in the order of the
# payloads, so that the first one is claimed first.
ENQUEUE_MANY_KEYLESS = f"""
WITH new AS (
INSERT INTO rowcall.job_runs
    (job_type, payload, queue, priority, run_at, max_attempts, unique_mode, key_owner, created_by, trace_parent)
SELECT %(job_type)s, given.payload, %(queue)s, %(priority)s, {DUE_AT}, %(max_attempts)s, %(unique_mode)s, %(key_owner)s,
    %(created_by)s, %(trace_parent)s
FROM pg_catalog.jsonb_array_elements(%(payloads)s::pg_catalog.jsonb) WITH ORDINALITY AS given(payload, position)
ORDER BY given.position
RETURNING id, {IS_DUE} AS is_due
), woken AS MATERIALIZED (
    SELECT rowcall.wake(%(queue)s, %(job_type)s) FROM new WHERE is_due LIMIT 1
)
SELECT pg_catalog.array_agg(id ORDER BY id) AS ids, (SELECT pg_catalog.count(*) FROM woken) AS woken FROM new
"""

# One statement inserts at most this many runs, and about this many characters of payloads: PostgreSQL refuses an array
# of more than 256 MB, and keeps it in memory.
RUNS_MOST = 2000
CHARACTERS_MOST = 2**23


def insert_keyless(connection: Connection, payloads: Sequence[str], columns: Mapping[str, Any]) -> list[int]:
    """Insert a run for each payload, which is JSON text, with these columns, all or none; return their ids in order."""
    if len(payloads) == 1:
        return [fetch_value(connection, ENQUEUE_ONE_KEYLESS, {**columns, "payload": payloads[0]})]
    ids: list[int] = []
    with all_or_nothing(connection):
        for portion in divided(payloads, len, CHARACTERS_MOST, RUNS_MOST):
            [new] = fetch_all(connection, ENQUEUE_MANY_KEYLESS, {**columns, "payloads": as_array(portion)})
            ids += new["ids"]
    return ids


def as_array(payloads: Sequence[str]) -> str:
    """Return the JSON array of these JSON texts."""
    return f"[{', '.join(payloads)}]"
