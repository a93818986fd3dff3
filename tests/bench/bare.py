"""The yardstick: the minimum that a program can do to claim, finish, insert and wake, on Rowcall's tables."""

from __future__ import annotations

import json
import select
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rowcall.base.database import PgConnection
from rowcall.queue.fragments import CHANNEL

BATCH = 500

# One statement, one queue, one priority, no history and no result: the textbook's best case.
FINISH_AND_CLAIM = """
WITH finished AS (
    UPDATE rowcall.job_runs SET status = 'succeeded', finished_at = now(), updated_at = now(), locked_by = NULL,
        locked_until = NULL
    WHERE id = ANY(%(ids)s) AND locked_by = 'bare'
)
UPDATE rowcall.job_runs SET status = 'running', attempts = attempts + 1, lease_no = lease_no + 1, locked_by = 'bare',
    locked_until = now() + interval '2 minutes', updated_at = now()
WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM rowcall.job_runs
    WHERE finished_at IS NULL AND queue = 'default' AND priority = 0 AND run_at <= now()
        AND (status IN ('queued', 'failed') OR status = 'running' AND locked_until < now())
    ORDER BY run_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
RETURNING id, job_type, payload, attempts, max_attempts
"""

INSERT = "INSERT INTO rowcall.job_runs (job_type, payload) VALUES ('shop_nothing', %(payload)s) RETURNING id"
INSERT_MANY = (
    "INSERT INTO rowcall.job_runs (job_type, payload) SELECT 'shop_nothing', unnest(%(payloads)s::jsonb[]) RETURNING id"
)
# The same rows as those of `enqueue_many`, whose fingerprints are as long.
INSERT_MANY_WITH_KEYS = """
INSERT INTO rowcall.job_runs (job_type, payload, idempotency_key, request_fingerprint)
SELECT 'shop_nothing', payload, key, %(fingerprint)s
FROM unnest(%(payloads)s::jsonb[], %(keys)s::text[]) AS given(payload, key)
ON CONFLICT (idempotency_key, key_owner) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING id
"""


def drain(connection: PgConnection) -> int:
    """Claim and finish until nothing is left, and return the number of runs."""
    done, ids = 0, [0]
    with connection.cursor() as cursor:
        while ids:
            cursor.execute(FINISH_AND_CLAIM, {"ids": ids, "limit": BATCH})
            ids = [row[0] for row in cursor.fetchall()]
            done += len(ids)
    return done


def insert_one_by_one(connection: PgConnection, count: int) -> None:
    """Insert and commit one row at a time."""
    with connection.cursor() as cursor:
        for number in range(count):
            cursor.execute(INSERT, {"payload": json.dumps({"user_id": number})})
            cursor.fetchone()


def insert_many(connection: PgConnection, count: int) -> None:
    """Insert all rows in one statement and commit."""
    with connection.cursor() as cursor:
        cursor.execute(INSERT_MANY, {"payloads": [json.dumps({"user_id": number}) for number in range(count)]})
        cursor.fetchall()


def insert_many_with_keys(connection: PgConnection, keys: Sequence[str]) -> None:
    """Insert a row for each key that no row has, in one statement, and commit."""
    payloads = [json.dumps({"user_id": number}) for number in range(len(keys))]
    with connection.cursor() as cursor:
        cursor.execute(INSERT_MANY_WITH_KEYS, {"payloads": payloads, "keys": [*keys], "fingerprint": "f" * 64})
        cursor.fetchall()


class Taken(NamedTuple):
    """A claimed run, as FINISH_AND_CLAIM returns it."""

    run_id: int
    job_type: str
    payload: dict[str, Any]
    attempts: int
    max_attempts: int


def listen(connection: PgConnection, taken: Callable[[Taken], None], stop: Callable[[], bool]) -> None:
    """Wait for notifications, claim at each, and call `taken` with each run."""
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN {CHANNEL}")
        while not stop():
            if select.select([connection], [], [], 0.1)[0]:
                connection.poll()
                connection.notifies.clear()
                cursor.execute(FINISH_AND_CLAIM, {"ids": [0], "limit": BATCH})
                for row in cursor.fetchall():
                    taken(Taken._make(row))
