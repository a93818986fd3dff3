"""The statements that insert queued runs, unless a key is taken.

The unique indexes job_runs_idempotency_key and job_runs_held_key decide between equal keys: INSERT ... ON CONFLICT
waits for the winner's commit, and then does not return the losing row.  The commit also wakes a sleeping worker.

An idempotency key can also belong to a run that another request has enqueued: request_keys has these keys.  If the
existing run may release its natural key before the request is repeated, a unique index must decide this too, so the
request reserves its idempotency key there before it inserts its run.  Any other request only looks there: if it misses
a key that is just being written, the two requests differ in content.

Functions, operators and types are schema-qualified, because these statements run in callers' transactions, whose
search_path may contain other objects with the same names.
"""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.base.jsonb import stored
from rowcall.queue.keys.holders import Keys
from rowcall.status import Status

INSERT = """
INSERT INTO rowcall.job_runs
    (id, created_at, job_type, payload, queue, priority, run_at, max_attempts, natural_key, unique_mode,
     content_fingerprint, idempotency_key, key_owner, request_fingerprint, created_by, trace_parent, status)
OVERRIDING SYSTEM VALUE
"""
NEXT_ID = "pg_catalog.nextval('rowcall.job_runs_id_seq')"
# Taken together with the id, because lists find a time in the order of ids.  The statement may wait for a lock before
# that, and for another transaction's key after it.
TIME = "pg_catalog.clock_timestamp()"
UNLESS_A_KEY_IS_TAKEN = "ON CONFLICT DO NOTHING"
IS_DUE = "run_at OPERATOR(pg_catalog.<=) pg_catalog.now()"
RESERVE = "INSERT INTO rowcall.request_keys (idempotency_key, key_owner, run_id, request_fingerprint)"

DUE_AT = "coalesce(%(run_at)s::pg_catalog.timestamptz, pg_catalog.now())"

COLUMNS_OF_ONE = f"""%(job_type)s, %(payload)s::pg_catalog.jsonb, %(queue)s, %(priority)s,
    {DUE_AT}, %(max_attempts)s,
    %(natural_key)s, %(unique_mode)s, %(content_fingerprint)s,
    %(key)s, %(key_owner)s, %(request_fingerprint)s,
    %(created_by)s, %(trace_parent)s, '{Status.QUEUED}'"""
RETURNING_ONE = (
    f"RETURNING id, 1 AS position, CASE WHEN {IS_DUE} THEN rowcall.wake(%(queue)s, %(job_type)s) END AS woken"
)

# For one run, because planning the statement for ten thousand takes longer than inserting one.
ENQUEUE_ONE = f"""{INSERT}
VALUES (DEFAULT, DEFAULT, {COLUMNS_OF_ONE})
{UNLESS_A_KEY_IS_TAKEN}
{RETURNING_ONE}
"""

# The same for a run with an idempotency key, unless request_keys has the key.
ENQUEUE_ONE_WITH_KEY = f"""{INSERT}
SELECT {NEXT_ID}, {TIME}, {COLUMNS_OF_ONE}
WHERE NOT EXISTS (
    SELECT FROM rowcall.request_keys
    WHERE idempotency_key OPERATOR(pg_catalog.=) %(key)s AND key_owner OPERATOR(pg_catalog.=) %(key_owner)s
)
{UNLESS_A_KEY_IS_TAKEN}
{RETURNING_ONE}
"""

# The same if the run can also release its natural key: the statement first reserves the idempotency key.
RESERVE_AND_ENQUEUE_ONE = f"""
WITH request AS MATERIALIZED (
    SELECT {NEXT_ID} AS id, {TIME} AS created_at
), reserved AS (
    {RESERVE}
    SELECT %(key)s, %(key_owner)s, id, %(request_fingerprint)s FROM request
    ON CONFLICT DO NOTHING
    RETURNING run_id
)
{INSERT}
SELECT request.id, request.created_at, {COLUMNS_OF_ONE}
FROM request JOIN reserved ON reserved.run_id OPERATOR(pg_catalog.=) request.id
{UNLESS_A_KEY_IS_TAKEN}
{RETURNING_ONE}
"""

# How many characters the payloads of ENQUEUE_MANY may have together: PostgreSQL refuses a JSON array of more than
# 256 MB, and one statement must sort all keys.
WITH_KEYS_MOST = 2**26

# For each request, the statement decides what `reserves` decides for one.  Ids are assigned in the order of the
# requests, so that the first one is claimed first.  Rows are inserted in the order of their keys, first all that are
# reserved and then all runs, so that callers with the same keys cannot deadlock.
ENQUEUE_MANY = f"""
WITH request AS MATERIALIZED (
    SELECT {NEXT_ID} AS id, {TIME} AS created_at, given.*,
        %(unique_mode)s OPERATOR(pg_catalog.<>) 'ever' AND key IS NOT NULL AND natural_key IS NOT NULL AS reserves
    FROM ROWS FROM (
        pg_catalog.jsonb_array_elements(%(payloads)s::pg_catalog.jsonb),
        pg_catalog.jsonb_array_elements_text(%(natural_key_column)s::pg_catalog.jsonb),
        pg_catalog.jsonb_array_elements_text(%(content_fingerprint_column)s::pg_catalog.jsonb),
        pg_catalog.jsonb_array_elements_text(%(key_column)s::pg_catalog.jsonb),
        pg_catalog.jsonb_array_elements_text(%(request_fingerprint_column)s::pg_catalog.jsonb)
    ) WITH ORDINALITY AS given(payload, natural_key, content_fingerprint, key, request_fingerprint, position)
    ORDER BY position
), reserved AS (
    {RESERVE}
    SELECT key, %(key_owner)s, id, request_fingerprint FROM request WHERE reserves
    ORDER BY key COLLATE pg_catalog."C", position
    ON CONFLICT DO NOTHING
    RETURNING run_id
), new AS (
{INSERT}
SELECT request.id, request.created_at, %(job_type)s, request.payload, %(queue)s, %(priority)s,
       {DUE_AT}, %(max_attempts)s,
       request.natural_key, %(unique_mode)s, request.content_fingerprint,
       request.key, %(key_owner)s, request.request_fingerprint,
       %(created_by)s, %(trace_parent)s, '{Status.QUEUED}'
FROM request LEFT JOIN reserved ON reserved.run_id OPERATOR(pg_catalog.=) request.id
WHERE CASE WHEN request.reserves THEN reserved.run_id IS NOT NULL ELSE request.key IS NULL OR NOT EXISTS (
    SELECT FROM rowcall.request_keys AS kept
    WHERE kept.key_owner OPERATOR(pg_catalog.=) %(key_owner)s
        AND kept.idempotency_key OPERATOR(pg_catalog.=) request.key
) END
ORDER BY request.natural_key COLLATE pg_catalog."C", request.key COLLATE pg_catalog."C", request.position
{UNLESS_A_KEY_IS_TAKEN}
RETURNING id, {IS_DUE} AS is_due
), woken AS MATERIALIZED (
    SELECT rowcall.wake(%(queue)s, %(job_type)s) FROM new WHERE is_due LIMIT 1
)
SELECT pg_catalog.array_agg(new.id ORDER BY new.id) AS ids,
    pg_catalog.array_agg(request.position ORDER BY new.id) AS positions,
    (SELECT pg_catalog.count(*) FROM woken) AS woken
FROM new JOIN request ON request.id OPERATOR(pg_catalog.=) new.id
"""


def reserves(keys: Keys, unique_mode: str) -> bool:
    """Whether a request with these keys reserves its idempotency key, because its natural key can be released."""
    return keys.key is not None and keys.natural_key is not None and unique_mode != "ever"


def sent_keys(requests: Sequence[Keys]) -> dict[str, str | None]:
    """Return the keys as parameters of ENQUEUE_MANY: each column is one JSON array, or None if no request has it."""
    columns = zip(Keys._fields, zip(*requests, strict=True), strict=True)
    return {f"{name}_column": stored(values) if any(values) else None for name, values in columns}


def statement_for(keys: Keys, unique_mode: str) -> str:
    """Return the cheapest statement that inserts one run with these keys."""
    if keys.key is None:
        return ENQUEUE_ONE
    return RESERVE_AND_ENQUEUE_ONE if reserves(keys, unique_mode) else ENQUEUE_ONE_WITH_KEY
