"""The plans of housekeeping beside 100,000 rows of each kind: they read a page and little else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_one, fetch_value
from rowcall.queue.retention.prune import (
    ARCHIVED,
    BEGINNING,
    DELETE_OCCURRENCES,
    PAGE,
    POLICY,
    PRUNE,
    Retention,
    read_page,
)
from rowcall.status import FINAL
from tests.support.plans import looked_at, plan

MANY = 100_000
BATCH = 500
WEEK = Retention(dict.fromkeys(FINAL, 7), {})

YOUNG = f"""
ALTER TABLE rowcall.job_runs SET (autovacuum_enabled = false);
ALTER TABLE rowcall.job_attempts SET (autovacuum_enabled = false);
ALTER TABLE rowcall.schedule_occurrences SET (autovacuum_enabled = false);
ALTER TABLE rowcall.job_runs ALTER id RESTART WITH {10 * MANY};
INSERT INTO rowcall.job_runs (job_type, status, finished_at)
SELECT 'noop', 'succeeded', now() FROM generate_series(1, {MANY});
INSERT INTO rowcall.job_runs (job_type) SELECT 'noop' FROM generate_series(1, {MANY});
INSERT INTO rowcall.job_definitions (name, job_type)
SELECT 'job ' || number, 'noop' FROM generate_series(1, 10) AS number
"""

# Bare rows, and runs that are due to be pruned.
OLD = f"""
ALTER TABLE rowcall.job_runs ALTER id RESTART WITH 1;
INSERT INTO rowcall.job_runs (job_type, status, created_at, finished_at, updated_at, idempotency_key, pruned_at)
SELECT 'noop', 'succeeded', moment, moment, moment, 'old:' || number, now()
FROM (
    SELECT number, now() - interval '300 days' + number * interval '1 second' FROM generate_series(1, {MANY}) AS number
) AS bare(number, moment);
INSERT INTO rowcall.job_runs (job_type, status, created_at, finished_at, updated_at)
SELECT 'noop', 'dead', moment, moment, moment
FROM (
    SELECT now() - interval '100 days' + number * interval '1 second' FROM generate_series(1, {MANY}) AS number
) AS due(moment);
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker)
SELECT id, 1, 1, 'give up', 'a' FROM rowcall.job_runs WHERE status = 'dead';
INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, revision)
SELECT definition.id, now() - number * interval '1 hour', 'skipped', 1
FROM rowcall.job_definitions AS definition CROSS JOIN generate_series(1, {MANY // 10}) AS number
"""

ANALYZE = "ANALYZE rowcall.job_runs, job_attempts, schedule_occurrences"


@pytest.fixture(scope="module")
def filled(module_url: str) -> Iterator[PgConnection]:
    connection = database.connect(module_url)
    connection.autocommit = True
    for statement in (YOUNG, ANALYZE, OLD):
        database.fetch_all(connection, statement)
    yield connection
    connection.close()


@pytest.fixture(scope="module", params=["analyzed before there were old rows", "analyzed since"])
def known(filled: PgConnection, request: pytest.FixtureRequest) -> PgConnection:
    """Return a connection whose planner does not know 200,000 old rows, or does."""
    if request.param == "analyzed since":
        database.fetch_all(filled, ANALYZE)
    return filled


def at(after: tuple[str, int], bare: bool) -> dict[str, Any]:
    place = {"after_id": after[1]}
    return {**WEEK.parameters(), **place, "batch": BATCH, "bare": bare}


def among_the_due(connection: PgConnection) -> tuple[str, int]:
    row = fetch_one(connection, "SELECT created_at::text AS at, id FROM rowcall.job_runs WHERE status = 'dead' LIMIT 1")
    assert row
    return row["at"], row["id"]


@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize("place", ["at the beginning", "among those that are due"])
def test_a_page_is_one_range_of_one_index_however_much_is_before_and_behind_it(
    known: PgConnection, bare: bool, place: str
) -> None:
    after = BEGINNING if place == "at the beginning" else among_the_due(known)
    nodes = plan(known, PAGE, at(after, bare))
    assert looked_at(nodes) == BATCH
    assert "job_runs_pkey" in {node.get("Index Name") for node in nodes}


@pytest.mark.parametrize("bare", [True, False])
def test_a_page_is_taken_by_its_ids(known: PgConnection, bare: bool) -> None:
    page = read_page(known, WEEK, BEGINNING if bare else among_the_due(known), BATCH, bare)
    assert page
    assert len(page.due) == BATCH
    seen = {"due": page.due, "versions": page.versions}
    assert looked_at(plan(known, PRUNE, seen)) <= 3 * BATCH
    whole = plan(known, ARCHIVED, seen)
    assert looked_at(whole) == BATCH
    assert looked_at(whole, "job_attempts") == (0 if bare else BATCH)


def test_old_occurrences_are_found_at_the_head_of_their_definitions(known: PgConnection) -> None:
    nodes = plan(known, DELETE_OCCURRENCES, {"keep_days": 90, "batch": BATCH})
    # It reads the oldest occurrences of the first definitions, the last one of each, and those that it deletes.
    assert looked_at(nodes, "schedule_occurrences") <= 3 * BATCH + 20
    assert fetch_value(known, POLICY, {"job_type": "prune_runs"}) is None
