"""The plans of operations with 1,000,000 finished runs: each statement reads no more than its limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.operations import Action
from rowcall.queue.operations.actions import PAGES
from rowcall.queue.operations.carry_out import BATCH, SCANNED
from rowcall.queue.operations.lists import LIST_OPERATIONS, REFUSALS_PAGE
from rowcall.queue.operations.preview import COUNTED_MOST, COUNTS, scan_of
from rowcall.queue.views.lists import parameters, scan_for
from rowcall.queue.views.pages import Order
from tests.support.operations import requested
from tests.support.plans import looked_at, plan

MANY = 1_000_000

# Few runs wait or are dead, and all of them are older than the finished ones.
FILL = f"""
SET session_replication_role = replica;
ALTER TABLE rowcall.job_runs SET (autovacuum_enabled = off);
INSERT INTO rowcall.job_runs (job_type, status, finished_at, failed_at, created_at)
SELECT 'noop', 'dead', now(), now(), now() - interval '40 days' FROM generate_series(1, 700);
INSERT INTO rowcall.job_runs (job_type, created_at, queue)
SELECT 'noop', now() - interval '40 days', 'mail' FROM generate_series(1, 700);
INSERT INTO rowcall.job_runs (job_type, status, finished_at)
SELECT 'noop', 'succeeded', now() FROM generate_series(1, {MANY})
"""


@pytest.fixture(scope="module")
def filled(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection to the filled database, first without statistics."""
    connection = database.connect(module_url)
    connection.autocommit = True
    fetch_all(connection, FILL)
    yield connection
    connection.close()


# The action, the filter, the index that the preview reads, and how many of its rows.
PREVIEWS: list[tuple[Action, dict[str, Any], str, int]] = [
    (Action.CANCEL, {"everything": True}, "job_runs_live", 700),
    (Action.CANCEL, {"queue": "mail"}, "job_runs_live", 700),
    (Action.RETRY, {"status": ("dead",)}, "job_runs_failed", 700),
    (Action.RETRY, {"everything": True}, "job_runs_pkey", COUNTED_MOST),
    (Action.RETRY, {"job_type": "none"}, "job_runs_pkey", COUNTED_MOST),
]


@pytest.mark.parametrize("statistics", ["SELECT 1", "ANALYZE rowcall.job_runs"], ids=["no statistics", "analyzed"])
def test_previews_and_batches_walk_an_index_to_their_limit_whatever_the_planner_knows(
    filled: PgConnection, statistics: str
) -> None:
    fetch_all(filled, statistics)
    for action, asked, index, most in PREVIEWS:
        request = requested(action, **asked)
        more = {"action": action.word, "milliseconds": 60_000, "waited": 60_000}
        criteria = request.narrowed
        unresolved = {"max_runs": COUNTED_MOST, "unresolved": [*range(6000)]}
        counting = {**parameters(filled, criteria, 0, None, COUNTED_MOST), **more, **unresolved}
        nodes = plan(filled, COUNTS[scan_of(request).name], counting)
        assert {node["Index Name"] for node in nodes if "Index Name" in node} == {index}, (action, asked)
        assert looked_at(nodes) <= most, (action, asked)
        batch = {**parameters(filled, criteria, BATCH, None, SCANNED), **more}
        assert looked_at(plan(filled, PAGES[scan_for(criteria).name], batch)) <= 2 * SCANNED, (action, asked)


def test_lists_of_operations_and_refusals_read_their_primary_keys(filled: PgConnection) -> None:
    sql = """
    INSERT INTO rowcall.operations
        (action, filter, status, matched, counted_all, requested_by, key_owner, request_fingerprint)
    SELECT 'retry', '{}', 'running', 0, true, 'a test', 'app', '' FROM generate_series(1, 5000);
    INSERT INTO rowcall.operation_refusals (operation_id, run_id, reason)
    SELECT 1 + number % 5, number, '' FROM generate_series(1, 10000) AS number;
    ANALYZE rowcall.operations, rowcall.operation_refusals
    """
    fetch_all(filled, sql)
    for order in Order:
        listed = plan(filled, BY_INDEX + LIST_OPERATIONS[order], {"beyond_id": 4000, "limit": 50})
        assert looked_at(listed, "operations") <= 51
        refused = plan(filled, BY_INDEX + REFUSALS_PAGE[order], {"id": 3, "beyond_id": 5000, "limit": 50})
        assert looked_at(refused, "operation_refusals") <= 51
