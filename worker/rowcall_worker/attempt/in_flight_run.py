"""One run in flight, from its claim until its end is written."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rowcall.base.clock import elapsed
from rowcall.queue import Claimed, Lease, LogLine
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.attempt.run_log import LogBuffer

# Held while a run gets its log: two of its threads may log their first line at the same time.
_BEGINS = threading.Lock()


NO_RESULT = AttemptResult()


class InFlightRun:
    """One run in flight: its lease as last confirmed, messages for its handler, and how it ended.

    Progress and forensics are JSON text; forensics describe how its child process ended, if it had one.
    """

    __slots__ = (
        "accepted_at",
        "begun_at",
        "cancel_requested",
        "claimed",
        "deadline",
        "ended_at",
        "forensics",
        "interrupted",
        "lease",
        "log",
        "lost",
        "progress",
        "refusals",
        "result",
        "settled",
        "write_at",
    )

    def __init__(self, worker: str, claimed: Claimed, deadline: float, accepted_at: float | None = None) -> None:
        self.claimed = claimed
        # The same run may come back under a new lease while an old handler still runs: the lease tells them apart.
        self.lease = Lease(worker, claimed.run_id, claimed.lease_no)
        self.deadline = deadline
        self.accepted_at = elapsed() if accepted_at is None else accepted_at
        self.begun_at: float | None = None
        self.ended_at: float | None = None
        self.cancel_requested = False
        self.lost = False
        self.settled = False
        self.result = NO_RESULT
        self.progress: str | None = None
        self.forensics: str | None = None
        # The error that ended the handler from outside, such as Celery's second Ctrl-C.
        self.interrupted: BaseException | None = None
        self.write_at = 0.0
        self.refusals = 0
        # Most runs log nothing.
        self.log: LogBuffer | None = None

    def renewed(self, deadline: float) -> None:
        """Record that the lease was renewed until this time."""
        self.deadline = max(self.deadline, deadline)

    @property
    def seconds(self) -> float | None:
        """How long its handler has been running, or ran until it ended; None if no thread has begun the run."""
        if self.begun_at is None:
            return None
        return (elapsed() if self.ended_at is None else self.ended_at) - self.begun_at

    def begin_log(self) -> LogBuffer:
        """Return the buffer in which the lines of this attempt wait to be written."""
        with _BEGINS:
            self.log = self.log or LogBuffer()
            return self.log

    @property
    def unwritten(self) -> Sequence[LogLine]:
        """The lines of the run's log that are not written yet."""
        return () if self.log is None else self.log.unwritten
