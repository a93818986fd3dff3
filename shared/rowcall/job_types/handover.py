"""Hand-over: a job type whose runs are performed by the workers of another queue, such as Celery's."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rowcall.base.errors import DeclarationError

# The queue of a Celery worker that is started without -Q.
CELERYS_QUEUE = "celery"

# How long a message waits for a consumer before the run is handed over again: longer than a deploy, and short enough
# for a lost message.
WAIT_SECONDS = 900.0
LONGEST_WAIT_SECONDS = 7 * 86400.0

# What a broker takes as a name and a person can read; a space would end it in `job_runs.locked_by`.
NAME = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True)
class Handover:
    """Where runs are handed over: to a Celery task, by messages in a queue, each of which waits at most `wait` seconds.

    That is the lease of a run whose message waits; from its beginning on, the run has the lease of its type.
    """

    task: str
    queue: str
    wait: float


def celery(task: str, *, queue: str = CELERYS_QUEUE, wait: float = WAIT_SECONDS) -> Handover:
    """Hand runs over to the Celery task of this name, which calls `run_handed_over`.

    The messages go to `queue`, which a Celery worker declares.  If no consumer begins a run within `wait` seconds, its
    message counts as lost, and the run is handed over again.
    """
    for name, text in (("task", task), ("queue", queue)):
        if not isinstance(text, str) or NAME.fullmatch(text) is None:
            raise DeclarationError(
                f"celery(): {name} is {text!r} and must be up to 200 letters, digits and signs without a space, such as"
                f" {'shop.tasks.send' if name == 'task' else CELERYS_QUEUE!r}"
            )
    if not isinstance(wait, int | float) or isinstance(wait, bool) or not 1 <= wait <= LONGEST_WAIT_SECONDS:
        raise DeclarationError(
            f"celery(): wait is {wait!r} and must be seconds from 1 to {LONGEST_WAIT_SECONDS:.0f} (7 days)"
        )
    return Handover(task, queue, float(wait))
