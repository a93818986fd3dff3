"""cleanup_nightly: what has expired is deleted, in batches that lock little and each count once."""

from __future__ import annotations

from datetime import date

from shared.business.cache import count_old_cache_entries, delete_old_cache_entries
from shared.business.days import utc_day
from shared.business.sessions import count_expired_sessions, delete_expired_sessions
from worker.context import Run
from worker.handlers import handles

# A batch is one transaction; a crash costs no more than the last one, and nobody waits long for its locks.
BATCH = 1000

# Progress is a share of what was there; counting a larger heap exactly would cost more than it tells.
COUNTED_MOST = 1_000_000

STEPS = {
    "sessions": (count_expired_sessions, delete_expired_sessions),
    "cache_entries": (count_old_cache_entries, delete_old_cache_entries),
}


@handles("cleanup_nightly")
def cleanup_nightly(run: Run) -> dict[str, int]:
    """Delete what expired before the day's end (UTC); the figures count over all attempts."""
    _, before = utc_day(date.fromisoformat(run.payload["day"]))
    deleted: dict[str, int] = {**dict.fromkeys(STEPS, 0), **(run.saved() or {})}
    with run.step() as connection:
        left = sum(count(connection, before, COUNTED_MOST) for count, _ in STEPS.values())
    whole = max(sum(deleted.values()) + left, 1)
    for name, (_, delete) in STEPS.items():
        batch = BATCH
        while batch == BATCH:
            with run.step() as connection:
                batch = delete(connection, before, BATCH)
                deleted[name] += batch
                run.save(connection, deleted)
            run.progress(sum(deleted.values()) / whole, f"deleting {name.replace('_', ' ')}")
    return deleted
