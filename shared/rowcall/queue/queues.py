"""Queues: list, pause, resume and limit them, and remove their settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rowcall.access.audit import Operator, record
from rowcall.base.database import Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import QueueBusy, QueueInvalid, QueueUnset
from rowcall.job_types.declaration import NAME
from rowcall.queue.claims.lanes import LANES
from rowcall.queue.fragments import BY_INDEX, WAKE_WORKERS
from rowcall.status import Event, Status, sources_of

# How often a change is tried while others remove the settings that it makes.
TRIES = 3

# Counting stops here, so that it costs the same for any backlog.
COUNTED_MOST = 1000

# Reads one range of job_runs_live for each lane, up to the limit of the count.  The running runs of a queue with a
# limit are its holders; for a queue without a limit they are not counted, because that would read all live runs.
LIST_QUEUES = f"""
WITH RECURSIVE {LANES}, waiting AS (
    SELECT lanes.queue, sum(counted.due) AS due, min(counted.oldest) AS oldest FROM lanes CROSS JOIN LATERAL (
        SELECT count(*) AS due, min(run_at) AS oldest FROM (
            SELECT run_at FROM rowcall.job_runs
            WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority AND run_at <= now()
                AND status IN {sources_of(Event.CLAIM)}
            ORDER BY run_at, id LIMIT {COUNTED_MOST}
        ) AS first
    ) AS counted GROUP BY lanes.queue
)
SELECT coalesce(waiting.queue, queues.name) AS name, queues.paused_at,
    least(queues.max_running, (%(declared)s::jsonb ->> coalesce(waiting.queue, queues.name))::integer) AS max_running,
    CASE WHEN queues.holders <> '{{}}' THEN (
        SELECT count(*) FROM rowcall.job_runs WHERE id = ANY(queues.holders) AND status = '{Status.RUNNING}'
    ) END AS running_under_limit,
    least(coalesce(waiting.due, 0), {COUNTED_MOST})::integer AS due, waiting.oldest AS due_since
FROM waiting FULL JOIN rowcall.queues ON queues.name = waiting.queue
ORDER BY 1
"""

GET_QUEUE = "SELECT name, paused_at, max_running FROM rowcall.queues WHERE name = %(name)s FOR UPDATE"

# The row that a claim under a limit locks.  A queue has one if an operator has paused or limited it, or if a job type
# declares a max_running.
MAKE_QUEUES = "INSERT INTO rowcall.queues (name) SELECT unnest(%(names)s::text[]) ON CONFLICT (name) DO NOTHING"

# Removes a queue's settings, unless a run that was claimed under its limit is running: these runs are its holders.
REMOVE = f"""
DELETE FROM rowcall.queues WHERE name = %(name)s AND NOT EXISTS (
    SELECT FROM rowcall.job_runs WHERE id = ANY(queues.holders) AND status = '{Status.RUNNING}'
)
"""

# The primary key of queues.
HAS_QUEUE = "SELECT EXISTS (SELECT FROM rowcall.queues WHERE name = %(name)s)"

PAUSE = "UPDATE rowcall.queues SET paused_at = coalesce(paused_at, now()), updated_at = now() WHERE name = %(name)s"

RESUME = "UPDATE rowcall.queues SET paused_at = NULL, updated_at = now() WHERE name = %(name)s"

# Running runs count if they were claimed under a limit; those claimed without a limit finish uncounted.
LIMIT = "UPDATE rowcall.queues SET max_running = %(max_running)s, updated_at = now() WHERE name = %(name)s"


def list_queues(connection: Connection, declared: Mapping[str, int]) -> list[Row]:
    """Return every queue that has live runs or settings; `declared` is as in ClaimRequest."""
    return fetch_all(connection, BY_INDEX + LIST_QUEUES, {"declared": json.dumps(dict(declared))})


def make_queues(connection: Connection, names: Sequence[str]) -> None:
    """Insert the rows that a claim under a limit locks."""
    fetch_all(connection, MAKE_QUEUES, {"names": list(names)})


def has_queue(connection: Connection, name: str) -> bool:
    """Return whether the queue has a row, because of an operator's command or a declared limit."""
    return bool(fetch_value(connection, HAS_QUEUE, {"name": name}))


def pause_queue(connection: Connection, name: str, operator: Operator) -> Row:
    """Stop claims from a queue; running runs continue, and new runs wait."""
    return _change(connection, "pause", PAUSE, name, operator)


def resume_queue(connection: Connection, name: str, operator: Operator) -> Row:
    """Allow claims from a queue again."""
    return _change(connection, "resume", RESUME, name, operator)


def limit_queue(connection: Connection, name: str, max_running: int | None, operator: Operator) -> Row:
    """Limit how many runs of a queue run at a time; None removes the limit."""
    return _change(connection, "limit", LIMIT, name, operator, max_running=max_running)


def remove_queue(connection: Connection, name: str, operator: Operator) -> None:
    """Remove a queue's settings, as if no operator had ever paused or limited it; its runs stay."""
    before = fetch_one(connection, GET_QUEUE, {"name": name})
    if before is None:
        raise QueueUnset(name)
    fetch_all(connection, REMOVE, {"name": name})
    if has_queue(connection, name):
        raise QueueBusy(name)
    record(connection, operator.who, "remove", "queue", None, before, None, operator.request_id)
    fetch_all(connection, WAKE_WORKERS)


def _change(connection: Connection, action: str, sql: str, name: str, operator: Operator, **more: Any) -> Row:
    if not NAME.fullmatch(name):
        raise QueueInvalid(name)
    for _ in range(TRIES):
        make_queues(connection, [name])
        before = fetch_one(connection, GET_QUEUE, {"name": name})
        fetch_all(connection, sql, {"name": name, **more})
        after = fetch_one(connection, GET_QUEUE, {"name": name})
        if before is not None and after is not None:
            break
    else:
        raise QueueBusy(name, removed=True)
    record(connection, operator.who, action, "queue", None, before, after, operator.request_id)
    fetch_all(connection, WAKE_WORKERS)
    return after
