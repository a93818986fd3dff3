"""The plans of lists with 100,000 archived runs of six months: PostgreSQL merges the indexes, and reads little more."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.queue import Filter
from rowcall.queue.views.created import BEGIN, NEAR
from rowcall.queue.views.inspect import ATTEMPTS, GET_ARCHIVED
from rowcall.queue.views.lists import IN_ORDER, count_sql, page_sql, parameters, scan_for
from rowcall.queue.views.pages import Order
from rowcall.queue.views.run_log import LOG_END
from rowcall.status import Status
from tests.support.plans import plan

MONTHS = 6
MANY = 100_000

# Half of the runs are of one definition, a few are dead and have a key.
FILL = f"""
INSERT INTO rowcall.job_definitions (name, job_type) VALUES ('large', 'noop');
SELECT rowcall.make_archive_month(('2024-0' || number || '-01')::date) FROM generate_series(1, {MONTHS}) AS number;
INSERT INTO rowcall.archived_runs (id, job_type, payload, queue, priority, run_at, status, attempts, max_attempts,
    lease_no, suspect, unique_mode, key_owner, created_at, updated_at, finished_at, failed_at, definition_id,
    idempotency_key, attempts_ended, log)
SELECT number, 'noop', '{{}}', 'default', 0, moment, CASE WHEN number % 1000 = 0 THEN 'dead' ELSE 'succeeded' END, 1,
    10, 1, 0, 'ever', 'app', moment, moment, moment, CASE WHEN number % 1000 = 0 THEN moment END,
    CASE WHEN number % 2 = 0 THEN (SELECT id FROM rowcall.job_definitions) END,
    CASE WHEN number % 1000 = 0 THEN 'key-' || number END, '[]', '[]'
FROM generate_series(1, {MANY}) AS number CROSS JOIN LATERAL (
    VALUES (timestamptz '2024-01-01 00:00+00' + number * interval '180 days' / {MANY})
) AS times(moment);
ALTER TABLE rowcall.job_runs ALTER id RESTART WITH {MANY + 1};
INSERT INTO rowcall.job_runs (job_type) SELECT 'noop' FROM generate_series(1, 10);
"""

# The filter, the index that is merged, and how many rows a page of 50 may read: some more of each month than are shown.
WALKS: list[tuple[dict[str, Any], str, int]] = [
    ({}, "pkey", 51 + 2 * MONTHS),
    ({"status": (Status.DEAD, Status.FAILED)}, "created_at_id_idx", 51 + 2 * MONTHS),
    ({"definition": "large"}, "definition_id_created_at_id_idx", 51 + 2 * MONTHS),
    ({"key": "key-7000"}, "pkey idempotency_key_idx held_key_idx further_keys_idx", 6),
]


@pytest.fixture(scope="module")
def filled_url(module_url: str) -> str:
    """Fill the archive."""
    with database.transaction(module_url) as connection:
        fetch_all(connection, FILL)
    return module_url


def read(nodes: list[dict[str, Any]]) -> int:
    """Return how many rows of the archive a plan has read, by indexes."""
    scans = [node for node in nodes if str(node.get("Relation Name", "")).startswith("archived_runs_")]
    assert "Seq Scan" not in {node["Node Type"] for node in scans if node["Actual Loops"]}
    return sum((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in scans)


def test_a_page_merges_the_index_of_each_month_whatever_the_planner_knows(filled_url: str) -> None:
    connection = database.connect(filled_url)
    connection.autocommit = True
    for statistics in ("SELECT 1", "ANALYZE"):
        fetch_all(connection, statistics)
        for (wanted, index, most), order in itertools.product(WALKS, Order):
            asked = Filter(**wanted)
            known = {**parameters(connection, asked, 50, None, order=order), "milliseconds": 60_000, "waited": 60_000}
            nodes = plan(connection, page_sql(scan_for(asked, order)), known)
            names = [node.get("Index Name", "") for node in nodes if node["Actual Loops"]]
            walked = {name[len("archived_runs_2024_01_") :] for name in names if name.startswith("archived_runs_")}
            assert (walked, statistics) == ({*index.split()}, statistics), wanted
            assert read(nodes) <= most, wanted
            assert all(node["Actual Rows"] <= 51 for node in nodes if "Sort" in node["Node Type"]), wanted
            plan(connection, count_sql(scan_for(asked)), {**known, **parameters(connection, asked, 50, None)})
    connection.close()


def test_a_time_is_found_by_halves_in_every_month(filled_url: str) -> None:
    connection = database.connect(filled_url)
    connection.autocommit = True
    values = {"moment": "2024-03-07 12:00+00", "margin": 600, "near": NEAR, "milliseconds": 60_000, "waited": 60_000}
    assert read(plan(connection, IN_ORDER + BEGIN, values)) <= 20 * (MONTHS + 1)
    connection.close()


@pytest.mark.parametrize("statement", [GET_ARCHIVED, ATTEMPTS, LOG_END], ids=["run", "attempts", "log"])
def test_one_run_is_found_by_the_primary_key_of_each_month(filled_url: str, statement: str) -> None:
    connection = database.connect(filled_url)
    connection.autocommit = True
    assert read(plan(connection, statement, {"run_id": 7000, "limit": 10})) == 1
    connection.close()
