"""expire_keys: delete the bare rows of pruned runs, and with them their keys."""

from __future__ import annotations

from rowcall.job_types.housekeeping import EXPIRE_KEYS
from rowcall.queue.retention.walk import PruneOptions, expire_keys
from rowcall_worker.attempt.context import Run


@EXPIRE_KEYS.handler
def expire(run: Run) -> dict[str, int]:
    """Expire keys by the policy in the payload; the counts cover all attempts."""
    expired = 0
    for progress in expire_keys(run.payload, PruneOptions(run, saved=run.saved())):
        expired = progress.counts["deleted"]
        run.progress(progress.share, f"{progress.counts['looked_at']:,} runs looked at")
    return {"expired": expired}
