"""Explain why a run is waiting, or how it ended, with the command that would change it.

Each condition of the claim is evaluated on the current row, with the claim's own guards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.base.durations import duration_words
from rowcall.base.errors import RunNotFound
from rowcall.job_types import Catalogue
from rowcall.queue.claims.request import ALONE
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views.explain.ended import explained_end
from rowcall.queue.views.explain.handover import not_taken, put_off
from rowcall.queue.views.explain.running import running, time_of, times
from rowcall.queue.views.inspect import archived_run
from rowcall.queue.views.live_workers import LIVE_WORKERS, RUNNING_ALONE, SERVING
from rowcall.status import Event, Status, sources_of

# The run by its id, its queue's settings, and the running runs that count against the queue's limit.
RUN_AND_QUEUE = f"""
SELECT run.*, now() AS at, run.run_at <= now() AS due, run.attempts < run.max_attempts AS attempts_left,
    run.locked_until < now() AS lease_is_over, queues.paused_at AS queue_paused_at,
    least(queues.max_running, (%(declared)s::jsonb ->> run.queue)::integer) AS max_running,
    (%(declared)s::jsonb ->> run.queue)::integer AS declared_most,
    ARRAY(
        SELECT holder.id FROM rowcall.job_runs AS holder
        WHERE holder.id = ANY(queues.holders) AND holder.status = '{Status.RUNNING}' ORDER BY holder.id
    ) AS holders
FROM rowcall.job_runs AS run LEFT JOIN rowcall.queues ON queues.name = run.queue
WHERE run.id = %(run_id)s
"""

# Counting stops here, so that it costs the same for any backlog.
COUNTED_MOST = 1000

# The due runs of this queue that the claim takes first, in the order of job_runs_live.
BEFORE_IT = f"""
SELECT count(*) FROM (
    SELECT FROM rowcall.job_runs
    WHERE finished_at IS NULL AND queue = %(queue)s
        AND (priority, run_at, id) < (%(priority)s, %(run_at)s::timestamptz, %(id)s)
        AND run_at <= now() AND status IN {sources_of(Event.CLAIM)} AND suspect = 0
    ORDER BY priority, run_at, id LIMIT {COUNTED_MOST}
) AS first
"""

# Like the claim, skip a row that another transaction has locked.
IS_UNLOCKED = "SELECT EXISTS (SELECT FROM rowcall.job_runs WHERE id = %(id)s FOR SHARE SKIP LOCKED)"


@dataclass(frozen=True)
class Condition:
    """One condition of the claim: whether it holds, a sentence, and the command that would change it."""

    name: str
    holds: bool
    message: str
    command: str | None = None


@dataclass(frozen=True)
class Explained:
    """Why a run has its status; `conditions` is empty unless it waits for a claim."""

    run_id: int
    status: Status
    message: str
    commands: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()


def explain(
    connection: Connection,
    run_id: int,
    declared: Mapping[str, int],
    heartbeat: float,
    catalogue: Catalogue | None = None,
) -> Explained:
    """Explain why this run is waiting, what it is doing, or how it ended.

    `declared` are the catalogue's limits, as in ClaimRequest; `heartbeat` is the interval, in seconds, at which
    workers with older code send heartbeats.  With the `catalogue`, a worker is proposed only if one that starts here
    would know the job type.
    """
    parameters = {"run_id": run_id, "declared": json.dumps(dict(declared))}
    row = fetch_one(connection, RUN_AND_QUEUE, parameters) if 0 < run_id <= LARGEST_ID else None
    if row is None or row["pruned_at"]:
        row = archived_run(connection, run_id) or row
    if row is None:
        raise RunNotFound(run_id)
    status = Status(row["status"])
    if status is Status.RUNNING:
        return Explained(run_id, status, *running(connection, row, heartbeat))
    if row["finished_at"] is not None:
        return Explained(run_id, status, *explained_end(connection, row, status))
    lacking = catalogue.lacks(row["job_type"]) if catalogue is not None else None
    conditions = tuple(_conditions(connection, row, heartbeat, lacking))
    if catalogue is not None and lacking is None and catalogue[row["job_type"]].handover is not None:
        conditions += tuple(Condition("broker", False, refused) for refused in not_taken(connection, row))
    failing = [condition for condition in conditions if not condition.holds]
    message = "; ".join(condition.message for condition in failing) or _next_in_line(connection, row, heartbeat)
    return Explained(
        run_id, status, message, tuple(one.command for one in failing if one.command is not None), conditions
    )


def _conditions(connection: Connection, row: Row, heartbeat: float, lacking: str | None) -> Iterator[Condition]:
    yield _due(row, put_off(connection, row))
    used = f"{row['attempts']} of {row['max_attempts']} attempts are used"
    if row["attempts_left"]:
        yield Condition("attempts", True, used)
    else:
        yield Condition("attempts", False, f"{used}: no worker will claim it again", f"rowcall runs cancel {row['id']}")
    queue = row["queue"]
    if row["queue_paused_at"] is None:
        yield Condition("queue", True, f"queue {queue} is not paused")
    else:
        since = time_of(row["queue_paused_at"])
        yield Condition(
            "queue", False, f"queue {queue} has been paused since {since}", f"rowcall queues resume {queue}"
        )
    if row["max_running"] is not None:
        yield _limit(row)
    served = _served(connection, row, heartbeat)
    if lacking is not None and not served.holds:
        message = f"{served.message}; {lacking}: start a worker with the ROWCALL_APP that has it"
        served = Condition(served.name, False, message)
    yield served
    unlocked: bool = fetch_value(connection, IS_UNLOCKED, row)
    message = "its row is not locked" if unlocked else "another transaction has locked its row, perhaps to claim it"
    yield Condition("row", unlocked, message)


def _due(row: Row, reason: str) -> Condition:
    if row["due"]:
        return Condition("due", True, f"due since {time_of(row['run_at'])}")
    wait = duration_words(timedelta(seconds=ceil((row["run_at"] - row["at"]).total_seconds())))
    message = f"not due until {time_of(row['run_at'])}, in {wait}"
    if row["status"] == Status.FAILED:
        message += f": waiting for its retry, after attempt {row['attempts']} of {row['max_attempts']} failed with"
        message += f" {row['error_type']}"
    return Condition("due", False, message + reason, f"rowcall runs run-now {row['id']}")


def _limit(row: Row) -> Condition:
    queue, most, holders = row["queue"], row["max_running"], row["holders"]
    running = ", ".join(map(str, holders[:20])) + (", ..." if len(holders) > 20 else "")
    message = f"queue {queue} allows {most} at a time; {len(holders)} {'is' if len(holders) == 1 else 'are'} running"
    message += f": {running}" if holders else ""
    if len(holders) < most:
        return Condition("limit", True, message)
    declared = row["declared_most"]
    if declared is not None and declared <= len(holders):
        # The limit of the type applies, not that of the queue.
        return Condition("limit", False, f"{message}; the limit is max_running of its job type, in the code")
    return Condition("limit", False, message, f"rowcall queues limit {queue} {len(holders) + 1}")


def _served(connection: Connection, row: Row, heartbeat: float) -> Condition:
    workers = fetch_all(connection, BY_INDEX + SERVING, {**row, **times(heartbeat)})
    serving = _live(workers)
    job_type, queue = row["job_type"], row["queue"]
    if serving:
        named = ", ".join(serving[:5]) + (f" and {len(serving) - 5} more" if len(serving) > 5 else "")
        return Condition("worker", True, f"live workers take {job_type} from queue {queue}: {named}")
    others = fetch_value(connection, LIVE_WORKERS, times(heartbeat))
    # Live workers that serve other job types or queues show that the operator divides the work.
    command = f"rowcall worker run --types {job_type} --queues {queue}" if others else "rowcall worker run"
    message = f"no live worker takes {job_type} from queue {queue}"
    if silent := [worker for worker in workers if worker["stopped_at"] is None]:
        last = max(silent, key=lambda worker: worker["heartbeat_at"])
        sent = f"{last['id']} sent its last heartbeat at {time_of(last['heartbeat_at'])}"
        lapsed = "and since then has not woken up on time, or has let a lease expire: its process may be hanging"
        expected = f"and should send one every {last['interval_seconds']:g} s" if last["late"] else lapsed
        return Condition("worker", False, f"{message}: {sent}, {expected}", command)
    if workers:
        ended = max(worker["stopped_at"] for worker in workers)
        missed = ", after the run had become due, and did not take it"
        then = "; the next one will take it" if ended < row["run_at"] else missed
        # Perhaps cron starts them.
        command = "rowcall worker once" if ended < row["run_at"] <= row["at"] else command
        return Condition("worker", False, f"{message}: the last one ended at {time_of(ended)}{then}", command)
    if others:
        many = "1 live worker serves" if others == 1 else f"{others} live workers serve"
        restart = "restart a worker after you add a job type"
        return Condition("worker", False, f"{message}: {many} other job types or queues ({restart})", command)
    return Condition("worker", False, f"{message}, and no other worker is alive", command)


def _next_in_line(connection: Connection, row: Row, heartbeat: float) -> str:
    if row["suspect"]:
        return _suspect(row["suspect"])
    workers = _live(fetch_all(connection, BY_INDEX + SERVING, {**row, **times(heartbeat)}))
    alone = {one["locked_by"]: one["id"] for one in fetch_all(connection, RUNNING_ALONE, {"workers": workers})}
    if len(alone) == len(workers):
        named = f"run{'' if len(alone) == 1 else 's'} {', '.join(map(str, alone.values()))}"
        return f"each worker that serves it runs a suspect alone ({named}), and claims nothing until that run has ended"
    before: int = fetch_value(connection, BY_INDEX + BEFORE_IT, row)
    if not before:
        return (
            f"nothing blocks it: it is first in queue {row['queue']}, and a worker claims it at the queue's next turn"
        )
    many = f"{COUNTED_MOST} or more" if before >= COUNTED_MOST else str(before)
    come = "due run comes" if before == 1 else "due runs come"
    return f"waiting for its turn: in queue {row['queue']}, {many} {come} first"


def _suspect(leases: int) -> str:
    """Explain why a suspect waits; its rules differ from those of other runs."""
    if leases < ALONE:
        return "its worker's lease expired, perhaps because of this run: it waits until a worker has no other suspect"
    return (
        f"its workers' leases expired {leases} times, perhaps because of this run: it waits until a worker process"
        " has no other run, and then runs alone"
    )


def _live(workers: Iterable[Row]) -> list[str]:
    return [
        worker["id"]
        for worker in workers
        if worker["stopped_at"] is None and not worker["late"] and not worker["lapsed"]
    ]
