"""Hand-over: a lease passes from a worker to a message, and from the message to the consumer that begins the run.

The message has only the run's id and lease_no.  `locked_by` says who has the lease, so that one of several messages, or
a message that comes too late, finds that it may not begin: the worker that claimed the run, then `celery QUEUE TASK`
while a message waits, then `consumer NAME`.  A message may be received before its worker has written that it was sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from rowcall.base.database import Connection, Row, fetch_all, fetch_one
from rowcall.queue.claims.request import Claimed
from rowcall.queue.finish import snooze
from rowcall.queue.fragments import BY_INDEX, LEASE_KEY
from rowcall.queue.lease import CONSUMER, MESSAGE, UNLOCKED, Lease, parameters_of
from rowcall.status import Event, Status, sources_of

# The type of error, in the history, of a run that a consumer gives back, and how long such a run waits, so that workers
# and consumers that do not agree whether its type is handed over pass it to and fro only slowly.
GIVEN_BACK, GIVEN_BACK_SECONDS = "GivenBack", 10.0

# After the broker has confirmed the messages.  A run that a consumer has begun already is not found, and stays as it
# is.  A locked row is skipped, because a consumer may be about to begin its run.
HAND_OVER = f"""
WITH unlocked AS ({UNLOCKED})
UPDATE rowcall.job_runs AS run SET locked_by = %(lease_keys)s::jsonb ->> {LEASE_KEY}, updated_at = now()
WHERE run.id = ANY(ARRAY(SELECT id FROM unlocked))
RETURNING run.id
"""

# Primary key.  Only one consumer can begin a run under a lease: the second one waits for the row, and then finds the
# name of the first.  `repeated` allows the same consumer to repeat a statement whose commit was not confirmed.
# A consumer takes only runs of the types that are handed over, because a worker still performs the others.  From now on
# the lease is as long as that of a worker, because the consumer sends heartbeats.
BEGIN = f"""
UPDATE rowcall.job_runs AS run
SET locked_by = %(consumer)s, started_at = now(), updated_at = now(),
    locked_until = now() + (%(leases)s::jsonb ->> run.job_type)::float8 * interval '1 second'
WHERE run.id = %(run_id)s AND run.lease_no = %(lease_no)s AND run.status IN {sources_of(Event.HEARTBEAT)}
    AND %(leases)s::jsonb ? run.job_type
    AND (NOT starts_with(run.locked_by, '{CONSUMER}') OR %(repeated)s AND run.locked_by = %(consumer)s)
RETURNING run.id AS run_id, run.lease_no, run.job_type, run.payload, run.attempts AS attempt, run.max_attempts,
    run.scheduled_for, run.suspect, extract(epoch FROM now() - run.run_at)::float8 AS waited,
    run.cancel_requested_at IS NOT NULL AS cancel_requested
"""

# Who has a run, to say why a message was refused.
WHOSE = "SELECT job_type, status, lease_no, locked_by FROM rowcall.job_runs WHERE id = %(run_id)s"


class Begun(NamedTuple):
    """A run that a consumer has begun, and whether an operator has asked to cancel it."""

    claimed: Claimed
    cancel_requested: bool


def holder_of(queue: str, task: str) -> str:
    """Return the name under which a run's lease goes on while its message waits."""
    return f"{MESSAGE}{queue} {task}"


def hand_over(connection: Connection, holders: Mapping[Lease, str]) -> set[int]:
    """Pass leases of one worker on to messages; return the ids of the runs for which this was written."""
    parameters = parameters_of({lease: json.dumps(holder) for lease, holder in holders.items()})
    return {row["id"] for row in fetch_all(connection, BY_INDEX + HAND_OVER, parameters)}


def begin(
    connection: Connection, run_id: int, lease_no: int, consumer: str, leases: Mapping[str, float], repeated: bool
) -> Begun | None:
    """Begin a run under this lease; return None if it is over, or another consumer has begun the run.

    `leases` maps the job types that are handed over to the length of their lease in seconds.
    """
    asked: dict[str, Any] = {"run_id": run_id, "lease_no": lease_no, "consumer": consumer, "repeated": repeated}
    row = fetch_one(connection, BEGIN, {**asked, "leases": json.dumps(dict(leases))})
    if row is None:
        return None
    asked_to_stop = row.pop("cancel_requested")
    return Begun(Claimed(**row), asked_to_stop)


def whose(connection: Connection, run_id: int) -> Row | None:
    """Return the type, status, lease_no and owner of a run; None if there is no such run."""
    return fetch_one(connection, WHOSE, {"run_id": run_id})


def give_back(connection: Connection, message: Lease, reason: str) -> Status | None:
    """Give back a run whose message waits; return its new status, or None if the lease is over.

    A consumer does this if a worker performs the runs of this type.  The attempt does not count.
    """
    return snooze(connection, message, None, reason, pause=GIVEN_BACK_SECONDS, error_type=GIVEN_BACK)
