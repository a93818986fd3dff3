"""cleanup_nightly: delete expired rows in short batches, and count each batch once."""

from __future__ import annotations

from datetime import date, timedelta

from rowcall import Run
from rowcall_example.days import utc_day
from rowcall_example.job_types import CLEANUP_NIGHTLY
from rowcall_example.queries.cache import count_old_cache_entries, delete_old_cache_entries
from rowcall_example.queries.sessions import count_expired_sessions, delete_expired_sessions

# A batch is one transaction: a crash costs at most the last one, and locks are brief.
BATCH = 1000

# Progress is a share of what there is to delete; an exact count of more rows would take too long.
COUNTED_MOST = 1_000_000

# The weekly report compares a user's week with the one before, and still needs those sessions.
SESSIONS_KEPT = timedelta(days=15)

# What is deleted: its name, how long it is kept after it expires, and the functions that count and delete it.
STEPS = (
    ("sessions", SESSIONS_KEPT, count_expired_sessions, delete_expired_sessions),
    ("cache_entries", timedelta(0), count_old_cache_entries, delete_old_cache_entries),
)


@CLEANUP_NIGHTLY.handler
def cleanup_nightly(run: Run) -> dict[str, int]:
    """Delete rows whose retention ends by the end of the day (UTC); the counts are totals over all attempts."""
    _, ends = utc_day(date.fromisoformat(run.payload["day"]))
    deleted: dict[str, int] = {name: 0 for name, *_ in STEPS} | (run.saved() or {})
    with run.step() as connection:
        left = sum(count(connection, ends - kept, COUNTED_MOST) for _, kept, count, _ in STEPS)
    whole = max(sum(deleted.values()) + left, 1)
    for name, kept, _, delete in STEPS:
        batch = BATCH
        while batch == BATCH:
            with run.step() as connection:
                batch = delete(connection, ends - kept, BATCH)
                deleted[name] += batch
                run.save(connection, deleted)
            run.progress(sum(deleted.values()) / whole, f"deleting {name.replace('_', ' ')}")
    return deleted
