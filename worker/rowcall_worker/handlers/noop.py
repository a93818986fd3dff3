"""noop: nothing but the way there and back."""

from __future__ import annotations

from typing import Any

from rowcall_worker.attempt.context import Run
from rowcall_worker.handlers import handles


@handles("noop")
def noop(run: Run) -> dict[str, Any]:
    """Answer with the payload."""
    return run.payload
