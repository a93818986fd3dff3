"""The message that hands a run over: what Celery itself would send to call a task (its protocol, version 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rowcall.queue import Claimed


@dataclass(frozen=True)
class Message:
    """The parts of a message; the arguments of the task are the run's id and lease_no."""

    body: tuple[list[int], dict[str, Any], dict[str, None]]
    headers: Mapping[str, Any]
    correlation_id: str


def message_for(claimed: Claimed, task: str, origin: str) -> Message:
    """Return the message for this lease.  Its id names the lease, so that Celery's tools show it."""
    arguments = [claimed.run_id, claimed.lease_no]
    message_id = f"rowcall-{claimed.run_id}-{claimed.lease_no}"
    headers = {
        "lang": "py",
        "task": task,
        "id": message_id,
        "root_id": message_id,
        "parent_id": None,
        "group": None,
        "shadow": None,
        "eta": None,
        "expires": None,
        "retries": 0,
        "timelimit": [None, None],
        "argsrepr": repr(tuple(arguments)),
        "kwargsrepr": "{}",
        "origin": origin,
    }
    return Message(
        (arguments, {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}), headers, message_id
    )
