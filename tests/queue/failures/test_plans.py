"""The plans of counting and listing failures beside 200,000 attempts and a week of counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.failures.behind import ATTEMPTS_BEHIND
from rowcall.queue.failures.count import BATCH, COUNT, DELETE_OLD
from rowcall.queue.failures.list import FAILURES
from rowcall.queue.failures.recent import RECENT_ERROR_TYPES
from rowcall.queue.fragments import IN_ORDER
from rowcall.queue.queues import COUNTED_MOST
from rowcall.queue.views.stats import EXAMINED_MOST
from tests.support.plans import looked_at, plan

MANY = 100_000
NEW = 200
MINUTES = 9 * 24 * 60

# Old and new attempts, counts of nine days with one error in each minute, and live runs.
FILL = f"""
ALTER TABLE rowcall.job_runs SET (autovacuum_enabled = false);
ALTER TABLE rowcall.job_attempts SET (autovacuum_enabled = false);
ALTER TABLE rowcall.failure_counts SET (autovacuum_enabled = false);
INSERT INTO rowcall.job_runs (job_type, status, finished_at)
SELECT 'noop', 'dead', now() FROM generate_series(1, {MANY});
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, ended_at, error_type, error)
SELECT id, lease.no, 1, CASE WHEN lease.no = 2 THEN 'snooze' WHEN id %% 2 = 0 THEN 'fail' ELSE 'give up' END, 'w',
    now() - interval '1 minute' - id * interval '1 second', 'ValueError', 'it broke ' || id
FROM rowcall.job_runs CROSS JOIN generate_series(1, 2) AS lease(no);
INSERT INTO rowcall.failure_counts
SELECT date_trunc('minute', now()) - number * interval '1 minute', 'noop', 'default', 'ValueError', 'key', 1,
    now() - interval '1 minute' - greatest(number * 60, {NEW}) * interval '1 second', 1, 1
FROM generate_series(2, {MINUTES}) AS number;
INSERT INTO rowcall.job_runs (job_type, run_at)
SELECT 'noop', now() + number * interval '1 second' FROM generate_series(-{MANY // 2}, {MANY // 2}) AS number;
"""

ANY = {"job_type": None, "queue": None, "limit": 50}


@pytest.fixture(scope="module", params=["analyzed before there were rows", "analyzed since"])
def filled(module_url: str, request: pytest.FixtureRequest) -> Iterator[PgConnection]:
    connection = database.connect(module_url)
    connection.autocommit = True
    if request.param == "analyzed since":
        fetch_all(connection, "ANALYZE rowcall.job_runs, rowcall.job_attempts, rowcall.failure_counts")
    else:
        fetch_all(connection, FILL, {})
    yield connection
    connection.close()


def test_counting_reads_what_is_new_however_much_there_is(filled: PgConnection) -> None:
    nodes = plan(filled, IN_ORDER + COUNT, {})
    assert looked_at(nodes, "job_attempts") <= NEW
    assert looked_at(nodes) <= NEW


def test_a_batch_is_bounded(filled: PgConnection) -> None:
    nodes = plan(filled, IN_ORDER + COUNT, {}, before="TRUNCATE rowcall.failure_counts;")
    assert looked_at(nodes, "job_attempts") <= BATCH + 1
    assert looked_at(nodes) <= BATCH


def test_listing_reads_a_week_of_counts_what_is_new_and_the_first_live_runs(filled: PgConnection) -> None:
    nodes = plan(filled, IN_ORDER + FAILURES, ANY)
    assert looked_at(nodes, "job_attempts") <= NEW + ANY["limit"]  # type: ignore[operator]
    assert looked_at(nodes, "failure_counts") <= 7 * 24 * 60 + 100
    assert looked_at(nodes) <= NEW + 2 * COUNTED_MOST + 5


def test_old_counts_are_found_at_the_head_of_the_index(filled: PgConnection) -> None:
    assert looked_at(plan(filled, IN_ORDER + DELETE_OLD, {"batch": 500}), "failure_counts") <= 2 * 500


def test_the_types_of_recent_errors_are_read_from_the_newest_attempts(filled: PgConnection) -> None:
    nodes = plan(filled, IN_ORDER + RECENT_ERROR_TYPES, {"most": NEW})
    assert looked_at(nodes, "job_attempts") == NEW


@pytest.mark.parametrize("error_key", [None, "no such key"])
def test_the_attempts_behind_a_count_are_found_among_the_newest_failures(
    filled: PgConnection, error_key: str | None
) -> None:
    asked = {"hours": 168, "job_type": "noop", "error_type": "ValueError", "error_key": error_key, "limit": 100}
    nodes = plan(filled, IN_ORDER + ATTEMPTS_BEHIND, asked)
    assert looked_at(nodes, "job_attempts") <= EXAMINED_MOST + asked["limit"] + 1  # type: ignore[operator]
    assert looked_at(nodes) <= EXAMINED_MOST
