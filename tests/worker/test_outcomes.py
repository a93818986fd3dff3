"""Outcomes: what a verdict does to its run."""

from __future__ import annotations

import pytest

from shared import queue
from shared.database import PgConnection
from shared.errors import CancelRequested
from shared.job_types import load_catalogue
from shared.queue import Claimed
from shared.status import Status
from tests.making import WORKER, row_of, run_in
from worker.hands import HeldRun
from worker.outcomes import finish_unsuccessful
from worker.verdict import verdict_on


@pytest.mark.parametrize(
    ("columns", "becomes", "outcome"),
    [
        ({"cancel_requested_at": "now()"}, Status.CANCELLED, "cancelled"),
        ({}, Status.FAILED, "fail"),
        ({"attempts": "5"}, Status.DEAD, "give up"),
    ],
    ids=["asked", "not asked", "not asked at the last attempt"],
)
def test_a_handler_that_stops_as_if_cancelled_has_failed_unless_somebody_asked_for_it(
    connection: PgConnection, columns: dict[str, str], becomes: Status, outcome: str
) -> None:
    run = run_in(connection, Status.RUNNING, **columns)
    claimed = Claimed(run["id"], run["lease_no"], "noop", {}, run["attempts"], run["max_attempts"], None)
    verdict = verdict_on(CancelRequested(run["id"]))
    status = finish_unsuccessful(connection, WORKER, load_catalogue(None), HeldRun(claimed, deadline=0), verdict)
    assert (status, row_of(connection, run["id"])["status"]) == (becomes, becomes)
    assert [attempt["outcome"] for attempt in queue.attempts_of(connection, run["id"])] == [outcome]
