"""The rows of `workers`: what each worker serves, and its last heartbeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue.claims.lanes import LANES
from rowcall.queue.fragments import BY_INDEX
from rowcall.status import Event, sources_of

# A worker without a heartbeat for longer than this is gone.  Long enough for `once`, which cron starts each minute, and
# for a deploy.
SILENCE_SECONDS = 150.0


def silence(heartbeat: float) -> float:
    """Return the seconds without a heartbeat after which a worker is gone: 3 intervals, at least SILENCE_SECONDS."""
    return max(SILENCE_SECONDS, 3 * heartbeat)


# A visit of `once` that found nothing to do has already stopped.
REGISTER = """
INSERT INTO rowcall.workers (id, hostname, pid, version, queues, job_types, concurrency, heartbeat_seconds, stopped_at)
VALUES (%(id)s, %(hostname)s, %(pid)s, %(version)s, %(queues)s::text[], %(job_types)s::text[], %(concurrency)s,
    %(heartbeat_seconds)s, CASE WHEN %(stopped)s THEN now() END)
"""

# Primary key; a heap-only update while the worker is awake, because no index contains heartbeat_at.  It does not wait
# for the row, because the worker's leases would wait too.  The final SELECT sees the row as it was before the update,
# and returns whether the sleep had already ended: then others no longer notified the worker.
ALIVE = """
WITH beat AS (
    UPDATE rowcall.workers
    SET heartbeat_at = now(),
        sleeps_until = CASE WHEN sleeps_until IS NOT NULL THEN now() + %(sleep)s * interval '1 second' END
    WHERE id = (SELECT id FROM rowcall.workers WHERE id = %(worker)s FOR NO KEY UPDATE SKIP LOCKED)
)
SELECT coalesce(sleeps_until < now(), false) AS overslept FROM rowcall.workers WHERE id = %(worker)s
"""

STOPPED = """
UPDATE rowcall.workers SET stopped_at = now(), heartbeat_at = now(), sleeps_until = NULL WHERE id = %(worker)s
"""

# When cron starts `once` each minute, each start adds a row.  The rows of one day are enough.
FORGET = "DELETE FROM rowcall.workers WHERE heartbeat_at < now() - interval '1 day'"

# Looks at the first thousand due runs of each lane, because runs that no worker takes accumulate at the head.  A
# paused queue is left out, because it waits on purpose.  A run is served if a worker with a recent heartbeat serves its
# type and queue, even a stopped one: cron will start `once` again.
UNSERVED = f"""
WITH RECURSIVE {LANES}, waiting AS (
    SELECT lanes.queue, first.job_type, first.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT job_type, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority
            AND run_at <= now() - %(waited)s * interval '1 second' AND status IN {sources_of(Event.CLAIM)}
        ORDER BY run_at, id LIMIT 1000
    ) AS first
    WHERE NOT EXISTS (SELECT FROM rowcall.queues WHERE queues.name = lanes.queue AND queues.paused_at IS NOT NULL)
)
SELECT queue, job_type, count(*) AS waiting, min(run_at) AS due_since FROM waiting
WHERE NOT EXISTS (
    SELECT FROM rowcall.workers
    WHERE heartbeat_at > now() - %(silence)s * interval '1 second' AND waiting.job_type = ANY(workers.job_types)
        AND (workers.queues IS NULL OR waiting.queue = ANY(workers.queues))
)
GROUP BY queue, job_type ORDER BY due_since, queue, job_type
"""

# Runs whose lease has expired, among the first thousand live runs of each lane, and that no worker with a recent
# heartbeat sweeps.  A worker sweeps them if it serves the queue, whatever its types, and is not the one that let the
# lease expire.
ABANDONED = f"""
WITH RECURSIVE {LANES}, expired AS (
    SELECT lanes.queue, first.job_type, first.locked_by, first.locked_until FROM lanes CROSS JOIN LATERAL (
        SELECT job_type, status, locked_by, locked_until FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority
        ORDER BY run_at, id LIMIT 1000
    ) AS first
    WHERE first.status IN {sources_of(Event.EXPIRE)} AND first.locked_until < now()
)
SELECT queue, job_type, count(*) AS abandoned, min(locked_until) AS expired_at FROM expired
WHERE NOT EXISTS (
    SELECT FROM rowcall.workers
    WHERE heartbeat_at > now() - %(silence)s * interval '1 second' AND workers.id <> expired.locked_by
        AND (workers.queues IS NULL OR expired.queue = ANY(workers.queues))
)
GROUP BY queue, job_type ORDER BY expired_at, queue, job_type
"""


@dataclass(frozen=True)
class Registration:
    """What a worker serves, where it runs, and how often it sends a heartbeat; `queues` None means all queues."""

    id: str
    hostname: str
    pid: int
    version: str
    queues: Sequence[str] | None
    job_types: Sequence[str]
    concurrency: int
    heartbeat_seconds: float | None = None
    stopped: bool = False


def register(connection: Connection, worker: Registration) -> None:
    """Register a worker."""
    fetch_all(connection, FORGET)
    fetch_all(connection, REGISTER, vars(worker))


def alive(connection: Connection, worker: Registration, sleep: float = 0.0) -> bool:
    """Record a heartbeat; a sleeping worker gets notifications for `sleep` more seconds.

    Return False if the worker may have missed notifications, because its heartbeat was late or its row was deleted.  A
    deleted row is inserted again, as that of an awake worker.
    """
    before = fetch_all(connection, ALIVE, {"worker": worker.id, "sleep": sleep})
    if not before:
        fetch_all(connection, REGISTER, vars(worker))
    return bool(before) and not before[0]["overslept"]


def stopped(connection: Connection, worker: str) -> None:
    """Record that a worker has stopped."""
    fetch_all(connection, STOPPED, {"worker": worker})


def unserved(connection: Connection, silence: float, waited: float | None = None) -> list[Row]:
    """Return the queues and types with due runs that no worker has served for `silence` seconds.

    Runs count if they have been due for as long as that, or for `waited` seconds.
    """
    return fetch_all(
        connection, BY_INDEX + UNSERVED, {"silence": silence, "waited": silence if waited is None else waited}
    )


def abandoned(connection: Connection, silence: float) -> list[Row]:
    """Return the queues and types of runs whose lease has expired and that no live worker takes over."""
    return fetch_all(connection, BY_INDEX + ABANDONED, {"silence": silence})
