"""A worker prepares its frequent statements if it has a session to itself, and they work anywhere else too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.base.prepared import Prepared
from rowcall.base.watched import InternalConnection, patient_prologue
from rowcall.queue import ClaimRequest, claim
from rowcall.queue.claims.claim import CLAIM
from rowcall.queue.claims.lanes import Lane
from rowcall.queue.fragments import BY_INDEX
from tests.support.plans import looked_at, plan
from tests.support.rows import WORKER

REQUEST = ClaimRequest({"noop": 60.0}, 2, lanes=[Lane("default", 0)])
PLANNED = "SELECT generic_plans::int, custom_plans::int FROM pg_prepared_statements"


@pytest.fixture
def link(worker_url: str) -> Iterator[InternalConnection]:
    """Yield a connection like a worker's."""
    link = database.connect_internal(worker_url)
    link.prologue = patient_prologue(0.2)
    link.autocommit = True
    yield link
    link.close()


def enqueue(link: InternalConnection, runs: int) -> None:
    fetch_all(link, f"INSERT INTO rowcall.job_runs (job_type) SELECT 'noop' FROM generate_series(1, {runs})")


def claims(link: PgConnection) -> list[int]:
    return [run.run_id for run in claim(link, WORKER, REQUEST).claimed]


@pytest.mark.parametrize("worker_url", ["direct"], indirect=True)
def test_a_claim_is_planned_once(link: InternalConnection) -> None:
    enqueue(link, 5)
    assert [claims(link) for _ in range(4)] == [[1, 2], [3, 4], [5], []]
    assert fetch_all(link, PLANNED) == [{"generic_plans": 4, "custom_plans": 0}]


@pytest.mark.parametrize("worker_url", ["pooled"], indirect=True)
def test_behind_a_pooler_that_lends_a_session_nothing_is_left_in_it(link: InternalConnection) -> None:
    enqueue(link, 5)
    assert [claims(link) for _ in range(4)] == [[1, 2], [3, 4], [5], []]
    assert fetch_all(link, PLANNED) == []


def test_within_a_transaction_nothing_is_planned_ahead_because_an_error_would_end_it(link: InternalConnection) -> None:
    enqueue(link, 5)
    link.autocommit = False
    assert claims(link) == [1, 2]
    assert fetch_all(link, PLANNED) == []


LOST = {
    "forgotten": "DEALLOCATE ALL",
    "altered": "ALTER TABLE rowcall.job_runs ADD COLUMN more text; CREATE INDEX ON rowcall.job_runs (more)",
    "of another type": "ALTER TABLE rowcall.job_runs ALTER COLUMN scheduled_for TYPE timestamp",
}


@pytest.mark.parametrize("worker_url", ["direct"], indirect=True)
@pytest.mark.parametrize("lost", LOST.values(), ids=LOST.keys())
def test_a_plan_that_has_gone_is_not_missed(link: InternalConnection, lost: str) -> None:
    enqueue(link, 5)
    assert claims(link) == [1, 2]
    fetch_all(link, lost)
    assert [claims(link) for _ in range(3)] == [[3, 4], [5], []]


@pytest.mark.parametrize("worker_url", ["direct"], indirect=True)
def test_a_plan_that_the_session_has_from_somebody_else_is_left_alone(link: InternalConnection) -> None:
    enqueue(link, 5)
    assert claims(link) == [1, 2]
    link.plans = frozenset()
    assert [claims(link) for _ in range(3)] == [[3, 4], [5], []]


@pytest.mark.parametrize("worker_url", ["direct"], indirect=True)
def test_what_was_planned_for_an_empty_table_reaches_its_rows_by_index_in_a_large_one(
    link: InternalConnection,
) -> None:
    assert claims(link) == []
    enqueue(link, 20_000)
    prepared = Prepared.of(BY_INDEX + CLAIM)
    settings, execute = prepared.again.split("EXECUTE", 1)
    nodes = plan(link, f"{settings}EXECUTE{execute}", REQUEST.parameters(WORKER))
    assert looked_at(nodes) <= 50
    assert fetch_value(link, "SELECT generic_plans::int FROM pg_prepared_statements") == 2
