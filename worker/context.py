"""What a handler is given: its run, and nothing that could get round the lease."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shared.queue import Claimed


class Run:
    """One attempt of one run, as its handler sees it."""

    __slots__ = ("attempt", "id", "job_type", "lease_no", "max_attempts", "payload", "scheduled_for")

    def __init__(self, claimed: Claimed) -> None:
        self.id: int = claimed.run_id
        self.lease_no: int = claimed.lease_no
        self.job_type: str = claimed.job_type
        self.attempt: int = claimed.attempt
        self.max_attempts: int = claimed.max_attempts
        self.payload: dict[str, Any] = claimed.payload
        self.scheduled_for: datetime | None = claimed.scheduled_for
