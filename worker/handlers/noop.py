"""noop: nothing but the way there and back."""

from __future__ import annotations

from typing import Any

from worker.context import Run
from worker.handlers import handles


@handles("noop")
def noop(run: Run) -> dict[str, Any]:
    """Answer with the payload."""
    return run.payload
