"""What the view reads from the database: one statement, about once a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rowcall.access.page_sessions import LINK_WORKS, hashed
from rowcall.base.database import PgConnection, Row, fetch_one
from rowcall.queue.fragments import BY_INDEX
from rowcall.status import Status

# The view reads only this many runs, so that it costs no more if there are ten million others.
NEWEST = 1000
# More than fit on any terminal.
SHOWN = 50

# The newest runs, and the newest effects of each table, are read along the primary key.  With a queue, only its runs
# and their effects are shown: with DATABASE_URL, all others are a team's own.
SNAPSHOT = f"""
WITH newest AS (
    SELECT * FROM (SELECT * FROM rowcall.job_runs ORDER BY id DESC LIMIT {NEWEST}) AS run
    WHERE %(queue)s::text IS NULL OR queue = %(queue)s
), counted AS (
    SELECT status, count(*) AS runs FROM newest GROUP BY status
), latest AS (
    SELECT id, job_type, status, attempts, max_attempts, error_type, left(last_error, 500) AS error,
        (progress ->> 'share')::float8 AS share, progress ->> 'note' AS note,
        extract(epoch FROM now() - coalesce(finished_at, updated_at)) AS age,
        extract(epoch FROM now() - started_at) AS running_for, extract(epoch FROM run_at - now()) AS due_in
    FROM newest
    ORDER BY status = '{Status.RUNNING}' DESC, coalesce(finished_at, updated_at) DESC, id DESC LIMIT {SHOWN}
), effect AS (
    (SELECT 'mail' AS kind, run_id, state, concat_ws(', ', recipient, subject) AS target, updated_at
     FROM rowcall.sent_emails ORDER BY id DESC LIMIT {SHOWN})
    UNION ALL
    (SELECT 'report', run_id, state, concat('user ', user_id, ', week of ', week_start_date), updated_at
     FROM rowcall.sent_reports ORDER BY id DESC LIMIT {SHOWN})
    UNION ALL
    (SELECT 'payment', run_id, state, coalesce('invoice ' || invoice_id, idempotency_key), updated_at
     FROM rowcall.payments ORDER BY id DESC LIMIT {SHOWN})
    UNION ALL
    (SELECT 'webhook', run_id, state, concat_ws(' to ', event_id, url), updated_at
     FROM rowcall.delivered_webhooks ORDER BY id DESC LIMIT {SHOWN})
    UNION ALL
    (SELECT 'file', run_id, state, coalesce(path, concat_ws(' ', type, date, key)), updated_at
     FROM rowcall.generated_files ORDER BY id DESC LIMIT {SHOWN})
    UNION ALL
    (SELECT kind, run_id, state, key, updated_at FROM rowcall.other_effects ORDER BY id DESC LIMIT {SHOWN})
), happened AS (
    SELECT kind, run_id, state, target, extract(epoch FROM now() - updated_at) AS age FROM effect
    WHERE %(queue)s::text IS NULL OR run_id IN (SELECT id FROM newest)
    ORDER BY updated_at DESC LIMIT {SHOWN}
)
SELECT (SELECT coalesce(json_object_agg(status, runs), '{{}}') FROM counted) AS counts,
    (SELECT coalesce(json_agg(latest), '[]') FROM latest) AS runs,
    (SELECT coalesce(json_agg(happened), '[]') FROM happened) AS effects,
    (SELECT coalesce(json_object_agg(id, status), '{{}}') FROM rowcall.job_runs
     WHERE id = ANY(%(announced)s::bigint[])) AS announced, {LINK_WORKS} AS link_works
"""


@dataclass(frozen=True)
class Snapshot:
    """Counts of the newest runs, the latest runs and effects, the announced runs, and whether the link works."""

    counts: Mapping[str, int]
    runs: list[Row]
    effects: list[Row]
    announced: Mapping[int, str]
    link_works: bool = True


def read_snapshot(connection: PgConnection, queue: str | None, announced: Iterable[int], link: str = "") -> Snapshot:
    """Read all that the view shows; ages are in seconds, by the database's clock.  `link` is the link's token."""
    asked = {"queue": queue, "announced": list(announced), "link": hashed(link)}
    row = fetch_one(connection, BY_INDEX + SNAPSHOT, asked)
    assert row is not None
    announced_now = {int(run_id): status for run_id, status in row["announced"].items()}
    return Snapshot(row["counts"], row["runs"], row["effects"], announced_now, row["link_works"])
