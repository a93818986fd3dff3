"""The plans of the statistics: each reads as many rows as it counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views.stats import AROUND, DEAD_LATELY, EXAMINED_MOST, figures
from tests.support.plans import looked_at, plan

MANY = 100_000

FILL = f"""
SET session_replication_role = replica;
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, ended_at)
SELECT number, 1, 1, CASE WHEN number %% 2 = 0 THEN 'fail' ELSE 'snooze' END, 'w',
    now() - number * interval '1 millisecond'
FROM generate_series(1, {MANY}) AS number;
INSERT INTO rowcall.job_definitions (name, job_type, next_run_at, paused_at)
SELECT 'd' || number, 'noop', now() - interval '1 day', CASE WHEN number <= 20 THEN now() END
FROM generate_series(1, 5000) AS number;
"""


@pytest.fixture(scope="module")
def filled(module_url: str) -> Iterator[PgConnection]:
    """Yield a database with more of everything than is counted."""
    connection = database.connect(module_url)
    connection.autocommit = True
    fetch_all(connection, FILL, {})
    fetch_all(connection, "VACUUM (ANALYZE) rowcall.job_attempts, job_definitions")
    yield connection
    connection.close()


def test_no_figure_looks_at_more_than_it_counts(filled: PgConnection) -> None:
    around = plan(filled, BY_INDEX + AROUND, {"heartbeat": 30})
    assert looked_at(around, "job_attempts") == 1000
    assert looked_at(around, "job_definitions") == 1000 + 20
    assert looked_at(plan(filled, BY_INDEX + DEAD_LATELY, {}), "job_attempts") <= EXAMINED_MOST


def test_what_is_too_much_to_be_counted_is_a_thousand(filled: PgConnection) -> None:
    told = figures(filled, [], {}, 30)
    assert told["attempts_failed_last_hour"] == 1000
    assert told["definitions"] == {"paused": 20, "overdue": 1000}
