"""Which workers are alive, judging by their rows, and what they serve."""

from __future__ import annotations

from rowcall.queue.claims.request import ALONE
from rowcall.status import Status

# A worker is late after two heartbeats that it missed, and half an interval of grace.
MISSED_INTERVALS = 2.5
# The worker that has a run is late after one of them.
HOLDER_INTERVALS = 1.5

# How often a worker sends a heartbeat; for a worker with older code, the interval of this process's settings.
INTERVAL = "coalesce(workers.heartbeat_seconds, %(heartbeat)s)"

# Whether a worker has sent its heartbeats and has not overslept.
PUNCTUAL = f"heartbeat_at > now() - {MISSED_INTERVALS} * {INTERVAL} * interval '1 second'"
AWAKE = "coalesce(sleeps_until > now(), true)"

# This many live runs of a queue are examined for expired leases, so that the cost is the same for any backlog.
EXAMINED_MOST = 1000

# Workers that serve a run's type and queue, including those that did a moment ago, because cron may start the next one.
# `lapsed`: the worker has overslept, or has let the lease of one of the first runs of this queue expire; the
# leases of older code may be shorter than the settings of this process say.  Uses job_runs_live.
SERVING = f"""
WITH expired AS MATERIALIZED (
    SELECT locked_by FROM (
        SELECT status, locked_by, locked_until FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = %(queue)s ORDER BY priority, run_at, id LIMIT {EXAMINED_MOST}
    ) AS first
    WHERE status = '{Status.RUNNING}' AND locked_until < now()
)
SELECT id, stopped_at, heartbeat_at, {INTERVAL}::float8 AS interval_seconds, NOT ({PUNCTUAL}) AS late,
    NOT ({AWAKE}) OR EXISTS (SELECT FROM expired WHERE locked_by = workers.id) AS lapsed
FROM rowcall.workers
WHERE heartbeat_at > now() - %(silence)s * interval '1 second' AND %(job_type)s = ANY(job_types)
    AND (queues IS NULL OR %(queue)s = ANY(queues))
ORDER BY id
"""

# The workers among these that run a suspect alone, and its id; uses job_runs_suspect.
RUNNING_ALONE = f"""
SELECT locked_by, id FROM rowcall.job_runs
WHERE finished_at IS NULL AND suspect > 0 AND suspect >= {ALONE} AND status = '{Status.RUNNING}'
    AND locked_by = ANY(%(workers)s::text[])
ORDER BY id
"""

# Whether a worker is alive.
ALIVE = f"(stopped_at IS NULL AND {PUNCTUAL} AND {AWAKE})"

# Live workers, whatever they serve.
LIVE_WORKERS = f"SELECT count(*) FROM rowcall.workers WHERE {ALIVE}"

# Also sees workers whose rows a restore has replaced.  A pooler may hide it.
WORKERS_CONNECTED = """
SELECT EXISTS (
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'rowcall worker %%'
)
"""

# Whether a live worker sweeps a run's queue; it may serve any job types.  The one that let the run's lease expire does
# not count, even if its last heartbeat is recent: its leases may be shorter than this process's.
SWEEPING = f"""
SELECT EXISTS (
    SELECT FROM rowcall.workers
    WHERE {ALIVE} AND id <> %(locked_by)s
        AND (queues IS NULL OR %(queue)s = ANY(queues))
)
"""

# The worker that holds a run's lease, and whether it has missed a heartbeat.
HOLDER = f"""
SELECT heartbeat_at, stopped_at IS NOT NULL
    OR heartbeat_at < now() - {HOLDER_INTERVALS} * {INTERVAL} * interval '1 second' AS late,
    %(locked_until)s::timestamptz < now() AS expired
FROM rowcall.workers WHERE id = %(locked_by)s
"""
