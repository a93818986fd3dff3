"""Outcomes: what a verdict does to its run."""

from __future__ import annotations

import pytest

from rowcall import queue
from rowcall.base.database import PgConnection
from rowcall.base.errors import CancelRequested
from rowcall.job_types import load_catalogue
from rowcall.queue import Claimed
from rowcall.status import Status
from rowcall_worker.attempt.result import error_of
from rowcall_worker.runtime.completer import finish_unsuccessful
from rowcall_worker.runtime.in_flight import InFlightRun
from tests.support.rows import WORKER, row_of, run_in


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
    verdict = error_of(CancelRequested(run["id"]))
    status = finish_unsuccessful(connection, WORKER, load_catalogue(None), InFlightRun(claimed, deadline=0), verdict)
    assert (status, row_of(connection, run["id"])["status"]) == (becomes, becomes)
    assert [attempt["outcome"] for attempt in queue.attempts_of(connection, run["id"])] == [outcome]
