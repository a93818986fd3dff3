"""What a handler is given: its run, and nothing that could get round the lease."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import structlog

from shared import logs
from shared.clock import elapsed
from shared.database import PgConnection, committed
from shared.errors import CancelRequested, LeaseLost
from shared.queue import Done, succeed
from shared.stored_json import stored
from worker.hands import HeldRun

Connect = Callable[[], PgConnection]


class Run:
    """One attempt of one run, as its handler sees it."""

    __slots__ = (
        "_connect",
        "_held",
        "_worker",
        "attempt",
        "finished",
        "id",
        "job_type",
        "lease_no",
        "max_attempts",
        "payload",
        "scheduled_for",
    )

    def __init__(self, held: HeldRun, worker: str, connect: Connect) -> None:
        claimed = held.claimed
        self.id: int = claimed.run_id
        self.lease_no: int = claimed.lease_no
        self.job_type: str = claimed.job_type
        self.attempt: int = claimed.attempt
        self.max_attempts: int = claimed.max_attempts
        self.payload: dict[str, Any] = claimed.payload
        self.scheduled_for: datetime | None = claimed.scheduled_for
        self.finished = False
        self._held = held
        self._worker = worker
        self._connect = connect

    @property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """A logger whose lines carry the run's id and lease."""
        return logs.log()

    def check(self) -> None:
        """Go on only if that still counts; a handler that takes long calls this between its steps.

        Raises CancelRequested when an admin asked for it, and LeaseLost when the run is no longer this worker's.
        """
        if self._held.lost or elapsed() > self._held.deadline:
            raise LeaseLost(self.id, self.lease_no)
        if self._held.cancel_requested:
            raise CancelRequested(self.id)

    def progress(self, share: float, note: str = "") -> None:
        """Tell how far the work is, from 0 to 1; written with the next heartbeat tick, at no cost to the handler."""
        self._held.progress = stored({"share": min(max(float(share), 0.0), 1.0), "note": note[:200]})

    @contextmanager
    def transaction(self, result: Any = None) -> Iterator[PgConnection]:
        """The handler's own database work and the run's success, committed together or not at all.

        The handler ends with this block: `result` becomes the run's, what the handler returns does not.  If the lease
        was lost, everything in the block is rolled back and LeaseLost is raised.
        """
        self.check()
        connection = self._connect()
        try:
            with committed(connection):
                yield connection
                text = None if result is None else stored(result)
                if not succeed(connection, self._worker, [Done(self.id, self.lease_no, text)]):
                    raise LeaseLost(self.id, self.lease_no)
            self.finished = True
        finally:
            connection.close()
