"""Queues: what waits in each, paused and resumed, and how many of its runs may run at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rowcall.access.audit import Operator, record
from rowcall.base.database import Connection, Row, fetch_all, fetch_one
from rowcall.base.errors import RunInvalid
from rowcall.job_types.declaration import NAME
from rowcall.queue.fragments import BY_INDEX, LANES
from rowcall.queue.wake import WAKE_WORKERS
from rowcall.status import Event, Status, sources_of

# Nobody needs to know whether it is a million or two: counting stops here.
COUNTED_MOST = 1000

# Each lane by one range of job_runs_live, and no further than is counted.  Running is told by the holders where there
# is a limit; without one nobody asks, and finding out would walk through all that is live.
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

# The row that a claim under a limit locks; a queue that was never paused nor limited by an operator has none.
MAKE_QUEUES = "INSERT INTO rowcall.queues (name) SELECT unnest(%(names)s::text[]) ON CONFLICT (name) DO NOTHING"

PAUSE = "UPDATE rowcall.queues SET paused_at = coalesce(paused_at, now()), updated_at = now() WHERE name = %(name)s"

RESUME = "UPDATE rowcall.queues SET paused_at = NULL, updated_at = now() WHERE name = %(name)s"

# What runs already counts too, as far as it was claimed under a limit; what was claimed without one ends uncounted.
LIMIT = "UPDATE rowcall.queues SET max_running = %(max_running)s, updated_at = now() WHERE name = %(name)s"


def list_queues(connection: Connection, declared: Mapping[str, int]) -> list[Row]:
    """Every queue in which something is live, or that was ever paused or limited; `declared` as Wanted has it."""
    return fetch_all(connection, BY_INDEX + LIST_QUEUES, {"declared": json.dumps(dict(declared))})


def make_queues(connection: Connection, names: Sequence[str]) -> None:
    """See that these queues can be claimed from with a limit."""
    fetch_all(connection, MAKE_QUEUES, {"names": list(names)})


def pause_queue(connection: Connection, name: str, operator: Operator) -> Row:
    """Let nothing more be claimed from a queue; what runs goes on, and what is enqueued waits."""
    return _change(connection, "pause", PAUSE, name, operator)


def resume_queue(connection: Connection, name: str, operator: Operator) -> Row:
    """Let a queue be claimed from again."""
    return _change(connection, "resume", RESUME, name, operator)


def limit_queue(connection: Connection, name: str, max_running: int | None, operator: Operator) -> Row:
    """Let only so many runs of a queue run at a time; None takes the limit away."""
    return _change(connection, "limit", LIMIT, name, operator, max_running=max_running)


def _change(connection: Connection, action: str, sql: str, name: str, operator: Operator, **more: Any) -> Row:
    if not NAME.fullmatch(name):
        raise RunInvalid({"queue": f"{name!r} is no queue's name, which is lower-case words such as mail"})
    make_queues(connection, [name])
    before = fetch_one(connection, GET_QUEUE, {"name": name})
    fetch_all(connection, sql, {"name": name, **more})
    after = fetch_one(connection, GET_QUEUE, {"name": name})
    assert before is not None
    assert after is not None
    record(connection, operator.who, action, "queue", None, before, after, operator.request_id)
    fetch_all(connection, WAKE_WORKERS)
    return after
