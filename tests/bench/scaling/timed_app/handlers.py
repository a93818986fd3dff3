"""Its handler."""

from __future__ import annotations

import time

from rowcall import Run
from tests.bench.scaling.timed_app.job_types import TIMED


@TIMED.handler
def timed(run: Run) -> None:
    """Take this long, as a handler does that waits for another system."""
    time.sleep(run.payload["seconds"])  # the work
