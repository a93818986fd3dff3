"""prune_runs: delete old finished runs, and reduce those with a key to a bare row."""

from __future__ import annotations

from rowcall.job_types.housekeeping import PRUNE_RUNS
from rowcall.queue.retention.walk import PruneOptions, prune_runs
from rowcall_worker.attempt.context import Run


@PRUNE_RUNS.handler
def prune(run: Run) -> dict[str, int]:
    """Prune by the policy in the payload; the counts cover all attempts."""
    where = run.payload["archive"]
    options = PruneOptions(run, run.gateways.archive if where else None, where == "table", saved=run.saved())
    counts: dict[str, int] = {}
    for progress in prune_runs(run.payload, options):
        counts = dict(progress.counts)
        run.progress(progress.share, f"{counts['looked_at']:,} runs looked at")
    return counts
