"""noop: do nothing; useful for testing the path through the queue."""

from __future__ import annotations

from typing import Any

from rowcall.job_types.builtin import NOOP
from rowcall_worker.attempt.context import Run


@NOOP.handler
def noop(run: Run) -> dict[str, Any]:
    """Return the payload."""
    return run.payload
