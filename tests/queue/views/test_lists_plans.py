"""The plans of lists with 100,000 runs: a page walks the index of its filter, no further than its limit."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.queue import Filter
from rowcall.queue.views.created import MARGIN_SECONDS, NEAR
from rowcall.queue.views.lists import SCANNED_MOST, count_sql, page_sql, parameters, scan_for
from rowcall.queue.views.pages import Order
from rowcall.status import Status
from tests.support.plans import looked_at, plan

MANY = 100_000

# The oldest runs are few, dead, and of one definition.  Most runs are newer and succeeded, half of them of another
# definition.  Autovacuum is off, so that only the test analyzes the table.
FILL = f"""
ALTER TABLE rowcall.job_runs SET (autovacuum_enabled = off);
INSERT INTO rowcall.job_definitions (name, job_type) VALUES ('large', 'noop'), ('small', 'noop');
INSERT INTO rowcall.job_runs
    (job_type, status, finished_at, failed_at, error_type, definition_id, created_at, idempotency_key)
SELECT 'noop', 'dead', now(), now(), 'ValueError', (SELECT id FROM rowcall.job_definitions WHERE name = 'small'),
    now() - interval '10 days' + number * interval '1 second', 'key-' || number
FROM generate_series(1, 30) AS number;
INSERT INTO rowcall.job_runs (job_type, status, finished_at, definition_id, created_at)
SELECT 'noop', 'succeeded', now(),
    CASE WHEN number % 2 = 0 THEN (SELECT id FROM rowcall.job_definitions WHERE name = 'large') END,
    now() - ({MANY} - number) * interval '1 second'
FROM generate_series(1, {MANY}) AS number
"""


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
YESTERDAY = datetime.now(UTC) - timedelta(days=1)

# How many runs were created within twice the margin of a time.
SHIFTED = 2 * MARGIN_SECONDS

# The filter, the index that is walked, and how many rows a page of 50 may read.
WALKS: list[tuple[dict[str, Any], str, int]] = [
    ({}, "job_runs_pkey", 51),
    ({"created_before": YESTERDAY}, "job_runs_pkey", 51 + NEAR + SHIFTED),
    ({"created_after": YESTERDAY}, "job_runs_pkey", 51 + NEAR + SHIFTED),
    ({"job_type": "noop"}, "job_runs_pkey", 51),
    ({"job_type": "none"}, "job_runs_pkey", 2 * SCANNED_MOST),
    ({"payload": {"a": 1}, "finished_before": LONG_AGO}, "job_runs_pkey", 2 * SCANNED_MOST),
    ({"status": (Status.DEAD, Status.RUNNING)}, "job_runs_pkey", 2 * SCANNED_MOST),
    ({"status": (Status.DEAD, Status.FAILED)}, "job_runs_failed", 60),
    ({"error_type": "KeyError"}, "job_runs_failed", 60),
    ({"definition": "small"}, "job_runs_definition", 60),
    ({"definition": "small", "status": (Status.DEAD,)}, "job_runs_definition", 60),
    ({"definition": "large"}, "job_runs_definition", 51),
    ({"definition": "large", "status": (Status.DEAD,)}, "job_runs_definition", 2 * SCANNED_MOST),
    ({"definition": "none"}, "job_runs_definition", 0),
    ({"key": "key-7"}, "job_runs_pkey job_runs_idempotency_key job_runs_held_key", 10),
]


def test_a_page_walks_the_index_of_what_is_asked_for_and_so_far_at_the_most_whatever_the_planner_knows(
    fresh_url: str,
) -> None:
    connection = database.connect(fresh_url)
    connection.autocommit = True
    fetch_all(connection, FILL)
    for statistics in ("SELECT 1", "ANALYZE rowcall.job_runs"):
        fetch_all(connection, statistics)
        for (wanted, index, most), order in itertools.product(WALKS, Order):
            asked = Filter(**wanted)
            known = {**parameters(connection, asked, 50, None, order=order), "milliseconds": 60_000, "waited": 60_000}
            nodes = plan(connection, page_sql(scan_for(asked, order)), known)
            walked = {node["Index Name"] for node in nodes if node.get("Index Name", "").startswith("job_runs")}
            assert (walked, statistics) == ({*index.split()}, statistics), wanted
            assert looked_at(nodes) <= most, wanted
            assert all(node["Actual Rows"] <= 51 for node in nodes if "Sort" in node["Node Type"]), wanted
            known |= parameters(connection, asked, 50, None)
            assert looked_at(plan(connection, count_sql(scan_for(asked)), known)) <= SCANNED_MOST, wanted
    connection.close()
