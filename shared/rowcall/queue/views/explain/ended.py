"""How a run ended, as its explanation tells it, and the commands that would run it again."""

from __future__ import annotations

from rowcall.base.database import Connection, Row, fetch_value
from rowcall.base.errors import AmbiguousEffect
from rowcall.job_types.housekeeping import CARRY_OUT_OPERATION
from rowcall.queue.views.explain.running import time_of
from rowcall.queue.views.inspect import was_erased
from rowcall.status import Status

# If a command finishes an operation, or its canary, before a worker does, the command also cancels the run that would
# have carried it out.
INACTIVE = "SELECT status FROM rowcall.operations WHERE id = %(operation_id)s AND status NOT IN ('canary', 'running')"


def explained_end(connection: Connection, row: Row, status: Status) -> tuple[str, tuple[str, ...]]:
    """Return how the run finished, whether its content is left, and the commands that run it again."""
    message, commands = _ended(row, status)
    if status is Status.CANCELLED and (reason := _not_needed(connection, row)):
        message, commands = f"{message}: {reason}", ()
    if row["pruned_at"] is not None:
        gone = "erased" if was_erased(connection, row["id"]) else "pruned"
        return f"{message}; payload {gone} at {time_of(row['pruned_at'])}", ()
    if row.get("archived"):
        return f"{message}; it is in the archive", (f"rowcall runs clone {row['id']}",)
    return message, commands


def _ended(row: Row, status: Status) -> tuple[str, tuple[str, ...]]:
    """Return how the run finished, and the commands that run it again."""
    when = time_of(row["finished_at"])
    # A run that holds its natural key cannot be cloned.
    clone = () if row["held_key"] is not None else (f"rowcall runs clone {row['id']}",)
    if status is Status.SUCCEEDED:
        return f"succeeded at {when}, on attempt {row['attempts']}", clone
    retry = f"rowcall runs retry {row['id']}"
    why = f"{row['error_type']}: {row['last_error']}" if row["last_error"] else row["error_type"]
    if status is Status.CANCELLED:
        return f"cancelled at {when}", (retry, *clone)
    if row["error_type"] == AmbiguousEffect.__name__:
        # On a retry, the effect would still be unknown; the error says how to resolve it.
        retry = f"rowcall effects list --run {row['id']} --state unknown"
    return f"failed for good at {when}, on attempt {row['attempts']} of {row['max_attempts']}: {why}", (retry,)


def _not_needed(connection: Connection, row: Row) -> str | None:
    """Say why a run that carries an operation out has nothing left to do; None if it has work, or is another run."""
    if row["job_type"] != CARRY_OUT_OPERATION.name or not row["payload"]:
        return None
    status = fetch_value(connection, INACTIVE, row["payload"])
    return None if status is None else f"operation {row['payload']['operation_id']} is {status} and does not need it"
