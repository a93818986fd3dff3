"""Its one handler."""

from __future__ import annotations

import os

from moments import Handled

from bench_app.job_types import NOTHING
from rowcall import Run

HANDLED = Handled(int(os.environ.get("BENCH_RECORD", "0")))


@NOTHING.handler
def nothing(run: Run) -> None:
    """Report the call."""
    HANDLED.call(run.payload["number"])
