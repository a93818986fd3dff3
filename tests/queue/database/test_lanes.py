"""Lanes: a claim starts at the positions that the worker passes, and a sweep returns these positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.queue import ClaimRequest, Swept, sweep
from rowcall.queue.claims.claim import CLAIM
from rowcall.queue.claims.lanes import BEGINNING, Lane, Position, find_lanes
from rowcall.queue.claims.sweep import OPEN_MOST
from rowcall.queue.fragments import BY_INDEX
from rowcall.status import Status
from tests.support.plans import plan
from tests.support.rows import row_of, run_in

REQUEST = ClaimRequest({"noop": 60.0}, 10)


def waiting(connection: PgConnection, **columns: str) -> int:
    run_id: int = run_in(connection, Status.QUEUED, **columns)["id"]
    return run_id


def position(connection: PgConnection, run_id: int) -> Position:
    return Position(row_of(connection, run_id)["run_at"], run_id)


def claim(connection: PgConnection, *lanes: Lane, limit: int = 10) -> queue.ClaimResult:
    return queue.claim(connection, "worker-2", replace(REQUEST, limit=limit, lanes=lanes))


def claimed_ids(result: queue.ClaimResult) -> list[int]:
    return [run.run_id for run in result.claimed]


def test_a_claim_takes_from_the_lanes_it_is_told_and_only_from_their_starts_on(connection: PgConnection) -> None:
    waiting(connection, queue="'mail'")
    before, start, after = (waiting(connection, queue="'reports'") for _ in range(3))
    result = claim(connection, Lane("reports", 0, position(connection, start)))
    assert claimed_ids(result) == [start, after]
    assert claimed_ids(claim(connection, Lane("reports", 0))) == [before]
    assert claimed_ids(claim(connection)) == []


def test_lanes_are_visited_in_the_order_in_which_they_are_told_whatever_waits_longest(connection: PgConnection) -> None:
    long = waiting(connection, queue="'mail'", run_at="now() - interval '50 minutes'")
    short = waiting(connection, queue="'reports'")
    mail, reports = Lane("mail", 0), Lane("reports", 0)
    assert claimed_ids(claim(connection, reports, mail, limit=1)) == [short]
    assert claimed_ids(claim(connection, reports, mail, limit=1)) == [long]


def test_a_claim_tells_each_lanes_first_run_that_it_could_have_taken_and_how_many_it_took(
    connection: PgConnection,
) -> None:
    run_in(connection, Status.RUNNING, queue="'mail'")
    waiting(connection, queue="'mail'", job_type="'unknown'")
    first, _ = (waiting(connection, queue="'mail'") for _ in range(2))
    other = waiting(connection, queue="'reports'", priority="7")
    waiting(connection, queue="'later'", run_at="now() + interval '1 hour'")
    waiting(connection, queue="'paused'")
    queue.pause_queue(connection, "paused", Operator("a test"))
    lanes = (Lane(name, 7 if name == "reports" else 0) for name in ("mail", "reports", "later", "paused", "gone"))
    result = claim(connection, *lanes, limit=2)
    assert result.heads == {("mail", 0): position(connection, first), ("reports", 7): position(connection, other)}
    assert result.taken == {("mail", 0): 2}


def test_a_time_that_python_cannot_hold_is_walked_from_the_beginning(connection: PgConnection) -> None:
    old = waiting(connection, run_at="'-infinity'")
    result = claim(connection, Lane("default", 0))
    assert (claimed_ids(result), result.heads["default", 0]) == ([old], BEGINNING)


def test_a_sweep_tells_of_each_lane_the_first_run_to_claim_and_how_far_it_looked(connection: PgConnection) -> None:
    running = run_in(connection, Status.RUNNING, queue="'mail'")["id"]
    first, last = (waiting(connection, queue="'reports'") for _ in range(2))
    waiting(connection, queue="'later'", run_at="now() + interval '1 hour'")
    swept = sweep(connection, REQUEST)
    assert [(walked.lane, walked.first, walked.until, walked.has_more) for walked in swept.lanes] == [
        (Lane("mail", 0), None, position(connection, running), False),
        (Lane("reports", 0), position(connection, first), position(connection, last), False),
    ]


def laps(connection: PgConnection, most: int) -> Iterator[Swept]:
    """Yield the sweeps of one lap."""
    swept = Swept()
    while not (swept := sweep(connection, REQUEST, swept.place, most)).complete:
        yield swept
    yield swept


def test_a_sweep_leaves_a_lane_that_claims_take_from_when_it_has_found_what_they_take(connection: PgConnection) -> None:
    first, *_ = (waiting(connection, queue="'mail'") for _ in range(3))
    other = waiting(connection, queue="'reports'")
    found = [(walked.lane.queue, walked.first) for swept in laps(connection, 2) for walked in swept.lanes]
    assert found == [("mail", position(connection, first)), ("reports", position(connection, other))]


def test_a_sweep_goes_on_in_a_lane_until_it_finds_what_this_worker_may_claim(connection: PgConnection) -> None:
    for _ in range(3):
        waiting(connection, job_type="'unknown'")
    first = waiting(connection)
    found = [(walked.first, walked.has_more) for swept in laps(connection, 2) for walked in swept.lanes]
    assert found == [(None, True), (position(connection, first), False)]


SHIPPED = """
INSERT INTO rowcall.job_runs (job_type, run_at)
SELECT 'noop', now() - interval '1 hour' + number * interval '1 millisecond' FROM generate_series(1, 20000) AS number;
UPDATE rowcall.job_runs SET status = 'succeeded', finished_at = now()
"""


def test_from_a_head_a_claim_does_not_walk_through_what_an_old_snapshot_keeps(fresh_url: str) -> None:
    with database.transaction(fresh_url) as reader, database.transaction(fresh_url) as connection:
        reader.set_session(isolation_level="REPEATABLE READ")
        fetch_value(reader, "SELECT count(*) FROM rowcall.job_runs")
        connection.autocommit = True
        fetch_all(connection, SHIPPED)
        run_id = waiting(connection)
        walked, begun = (pages(connection, start) for start in (BEGINNING, position(connection, run_id)))
    assert begun * 10 < walked


def pages(connection: PgConnection, start: Position) -> int:
    """Return how many pages a claim reads that walks the lane from this position."""
    told = replace(REQUEST, lanes=[Lane("default", 0, start)]).parameters("worker-2")
    nodes = plan(connection, BY_INDEX + CLAIM, told)
    return int(nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"])


UNSERVED = "INSERT INTO rowcall.job_runs (job_type) SELECT 'unknown' FROM generate_series(1, {})"


def test_what_a_worker_does_not_serve_is_walked_in_pieces_before_the_next_lane(connection: PgConnection) -> None:
    fetch_all(connection, UNSERVED.format(3 * OPEN_MOST))
    first = waiting(connection, run_at="now()")
    waiting(connection, queue="'reports'")
    swept = list(laps(connection, 2 * OPEN_MOST))
    assert [len(one.lanes) for one in swept] == [1, 1, 2]
    assert [one.lanes[0].first for one in swept] == [None, None, position(connection, first)]


def test_the_lanes_with_something_due_are_found_without_a_lap(connection: PgConnection) -> None:
    for name, run_at in (("mail", "now()"), ("reports", "now() + interval '1 hour'"), ("other", "now()")):
        waiting(connection, queue=f"'{name}'", run_at=run_at)
    waiting(connection, queue="'mail'", priority="-3")
    assert find_lanes(connection, ["mail", "reports"]) == [Lane("mail", -3), Lane("mail", 0)]


def test_of_the_lanes_it_is_told_a_claim_takes_only_from_the_queues_it_is_to_serve(connection: PgConnection) -> None:
    run_in(connection, Status.QUEUED, queue="'mail'")
    request = ClaimRequest({"noop": 60.0}, 10, ["default"], lanes=[Lane("mail", 0), Lane("default", 0)])
    assert queue.claim(connection, "worker-1", request).claimed == []
