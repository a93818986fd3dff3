"""The preview of an operation: how many runs it would change, and which; it changes nothing."""

from __future__ import annotations

import pytest

from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.queue import operations
from rowcall.queue.operations import Action
from rowcall.status import Status
from tests.support.operations import done, requested, statuses
from tests.support.rows import run_in

# Runs that the operation does not change, and how many rows of runs this transaction has fetched.
OTHERS = """
INSERT INTO rowcall.job_runs (job_type, status, lease_no, attempts, max_attempts, finished_at)
SELECT 'noop', 'succeeded', 1, 1, 5, now() FROM generate_series(1, %(number)s)
"""
FETCHED = """
SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
WHERE relid = 'rowcall.job_runs'::regclass
"""


def test_a_preview_counts_and_names_some_and_changes_nothing(connection: PgConnection) -> None:
    runs = [run_in(connection, Status.DEAD)["id"] for _ in range(7)]
    found = operations.preview(connection, requested(Action.RETRY, everything=True))
    assert (found.matched, found.counted_all, len(found.samples)) == (7, True, 5)
    assert {run["id"] for run in found.samples} <= {*runs}
    limited = operations.preview(connection, requested(Action.RETRY, everything=True, max_runs=3))
    assert (limited.matched, limited.left_out, limited.counted_all) == (3, 4, True)
    assert operations.preview(connection, requested(Action.RETRY, everything=True), most=7).counted_all is False
    assert statuses(connection, runs) == ["dead"] * 7
    assert fetch_all(connection, "SELECT id FROM rowcall.audit_log") == []
    assert operations.list_operations(connection).rows == []


def test_a_preview_reads_no_run_that_its_filter_leaves_out(connection: PgConnection) -> None:
    fetch_all(connection, OTHERS, {"number": 500})
    for _ in range(7):
        run_in(connection, Status.DEAD)
    before = fetch_value(connection, FETCHED)
    found = operations.preview(connection, requested(Action.RETRY, status=[Status.DEAD]))
    assert (found.matched, len(found.samples)) == (7, 5)
    assert fetch_value(connection, FETCHED) - before <= 7 + 5


@pytest.mark.parametrize(
    ("action", "status", "another"),
    [(Action.CANCEL, Status.QUEUED, Status.FAILED), (Action.RETRY, Status.DEAD, Status.CANCELLED)],
)
def test_a_preview_is_about_the_runs_that_would_be_changed(
    connection: PgConnection, action: Action, status: Status, another: Status
) -> None:
    """The newest, although the index of waiting runs begins with the oldest."""
    runs = [
        run_in(connection, another if hours == 8 else status, run_at=f"now() - interval '{hours} hours'")["id"]
        for hours in range(8, -1, -1)
    ][::-1]
    whole = operations.preview(connection, requested(action, everything=True), unresolved=runs[6:])
    assert (whole.matched, whole.by_status, whole.unresolved) == (9, {status: 8, another: 1}, 3)
    found = operations.preview(connection, requested(action, everything=True, max_runs=3), unresolved=runs[2:])
    assert ([run["id"] for run in found.samples], found.by_status, found.unresolved) == (runs[:3], {status: 3}, 1)
    operation = done(connection, action, everything=True, max_runs=3)
    after = Status.CANCELLED if action is Action.CANCEL else Status.QUEUED
    assert (operation["changed"], statuses(connection, runs[:3])) == (found.matched, [after] * 3)
