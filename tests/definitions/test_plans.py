"""The plans of the tick's statements: with thousands of definitions and a long history, each uses an index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.definitions.idle import IS_IDLE
from rowcall.definitions.lists import OCCURRENCES
from rowcall.definitions.occurrences import Occurrence
from rowcall.definitions.tick import DUE, LIVE, NEXT_DUE, OCCUR
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views.pages import Order
from tests.support.plans import looked_at, plan

MANY = 50_000

FILL = f"""
INSERT INTO rowcall.job_definitions (name, job_type, schedule, next_run_at)
SELECT 'd' || number, 'noop', '@daily', now() + (number - 3) * interval '1 minute'
FROM generate_series(1, 5000) AS number;
INSERT INTO rowcall.job_runs (job_type, status, finished_at, attempts, definition_id, scheduled_for)
SELECT 'noop', 'succeeded', now(), 1, 1, now() - number * interval '1 hour'
FROM generate_series(1, {MANY}) AS number;
INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, revision)
SELECT 1, now() - number * interval '1 hour', 'missed', 1 FROM generate_series(1, {MANY}) AS number;
INSERT INTO rowcall.job_runs (job_type, definition_id, scheduled_for) VALUES ('noop', 1, now());
"""


@pytest.fixture(scope="module")
def filled(module_url: str) -> Iterator[PgConnection]:
    connection = database.connect(module_url)
    connection.autocommit = True
    fetch_all(connection, FILL)
    fetch_all(connection, "VACUUM (ANALYZE) rowcall.job_runs, job_definitions, schedule_occurrences")
    yield connection
    connection.close()


def test_what_is_due_is_found_at_the_head_of_its_index(filled: PgConnection) -> None:
    wanted = {"job_types": ["noop"], "tried": [1], "resting_ids": [2], "resting_revisions": [1]}
    for sql in (DUE, NEXT_DUE):
        assert looked_at(plan(filled, sql, wanted), "job_definitions") <= 5


def test_a_visit_reads_the_head_of_each_index_and_of_each_lane(filled: PgConnection) -> None:
    nodes = plan(filled, BY_INDEX + IS_IDLE, {"names": ["narrow"], "version": "1.0"})
    assert looked_at(nodes, "job_definitions") <= 2
    assert looked_at(nodes, "job_runs") <= 2
    assert "job_runs_live" in {node.get("Index Name") for node in nodes}


def test_whether_a_run_is_under_way_is_told_without_looking_at_those_that_are_not(filled: PgConnection) -> None:
    nodes = plan(filled, LIVE, {"definition_id": 1})
    assert looked_at(nodes) == 1
    assert "job_runs_definition_live" in {node.get("Index Name") for node in nodes}


def test_writing_occurrences_looks_at_their_own_keys_alone(filled: PgConnection) -> None:
    values = {
        "nominal_at": ["2040-01-01T00:00:00Z", "2040-01-02T00:00:00Z"],
        "outcome": ["enqueued", "missed"],
        "reason": [None, "late"],
        "run_at": ["2040-01-01T00:00:00Z", None],
        "payload": ["{}", None],
        "natural_key": ["a", None],
        "fingerprint": ["", None],
    }
    assert set(values) == set(Occurrence._fields)
    options = {
        "definition_id": 1,
        "revision": 1,
        "job_type": "noop",
        "queue": "default",
        "priority": 0,
        "max_attempts": 3,
        "unique_mode": "ever",
        "created_by": "schedule:d1",
    }
    nodes = plan(filled, OCCUR, {**values, **options})
    known = [
        node for node in nodes if node.get("Relation Name") == "schedule_occurrences" and "Scan" in node["Node Type"]
    ]
    assert {node["Index Name"] for node in known} == {"schedule_occurrences_pkey"}
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in known) <= 2


@pytest.mark.parametrize(("order", "beyond"), [(Order.DESC, "infinity"), (Order.ASC, "-infinity")])
def test_occurrences_are_read_from_either_end_of_their_key(filled: PgConnection, order: Order, beyond: str) -> None:
    nodes = plan(filled, OCCURRENCES[order], {"definition_id": 1, "limit": 10, "beyond": beyond})
    assert looked_at(nodes, "schedule_occurrences") <= 11
