"""The plans of the series beside nine days of counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_one
from rowcall.queue.fragments import BY_INDEX, IN_ORDER
from rowcall.queue.series.histogram import BUCKETS
from rowcall.queue.series.read import SERIES
from rowcall.queue.series.record import DELETE_OLD
from tests.support.plans import looked_at, plan

MINUTES = 9 * 24 * 60
ROWS_A_MINUTE = 16

# Four workers that serve four job types.
FILL = f"""
ALTER TABLE rowcall.run_counts SET (autovacuum_enabled = false);
INSERT INTO rowcall.run_counts
SELECT date_trunc('minute', now()) - number * interval '1 minute', 'type-' || type, 'worker-' || worker, 1, 1, 1, 1, 1,
    1, array_fill(1, ARRAY[{BUCKETS}]), array_fill(1, ARRAY[{BUCKETS}])
FROM generate_series(0, {MINUTES - 1}) AS number, generate_series(1, 4) AS type, generate_series(1, 4) AS worker;
"""


@pytest.fixture(scope="module", params=["analyzed before there were rows", "analyzed since"])
def filled(module_url: str, request: pytest.FixtureRequest) -> Iterator[PgConnection]:
    connection = database.connect(module_url)
    connection.autocommit = True
    if request.param == "analyzed since":
        fetch_all(connection, "ANALYZE rowcall.run_counts")
    else:
        fetch_all(connection, FILL, {})
    yield connection
    connection.close()


def last(connection: PgConnection, minutes: int) -> dict[str, Any]:
    moments = "date_trunc('minute', now()) + interval '1 minute'"
    row = fetch_one(
        connection, f"SELECT {moments} AS until, {moments} - %(m)s * interval '1 minute' AS since", {"m": minutes}
    )
    assert row is not None
    return {**row, "seconds": 60, "job_type": None}


@pytest.mark.parametrize("minutes", [60, 1440])
def test_a_range_reads_its_own_minutes(filled: PgConnection, minutes: int) -> None:
    asked = last(filled, minutes)
    assert looked_at(plan(filled, BY_INDEX + SERIES, asked), "run_counts") <= minutes * ROWS_A_MINUTE


def test_a_type_reads_its_own_rows(filled: PgConnection) -> None:
    asked = {**last(filled, 60), "job_type": "type-1"}
    assert looked_at(plan(filled, BY_INDEX + SERIES, asked), "run_counts") <= 60 * 4


def test_old_counts_are_found_at_the_head_of_the_index(filled: PgConnection) -> None:
    assert looked_at(plan(filled, IN_ORDER + DELETE_OLD, {"batch": 500}), "run_counts") <= 2 * 500
