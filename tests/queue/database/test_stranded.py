"""Which runs a worker has under a lease, found through the lanes that it claimed from."""

from __future__ import annotations

from rowcall import queue
from rowcall.base.database import PgConnection
from rowcall.queue import Lease
from rowcall.queue.claims.lanes import Lane, Position
from rowcall.status import Status
from tests.support.rows import WORKER, run_in


def lease_on(connection: PgConnection, **columns: str) -> Lease:
    run = run_in(connection, Status.RUNNING, **columns)
    return Lease(run["locked_by"], run["id"], run["lease_no"])


def test_a_worker_holds_what_it_has_claimed_from_these_lanes_and_every_suspect(connection: PgConnection) -> None:
    own = [lease_on(connection), lease_on(connection, queue="'elsewhere'", suspect="1")]
    lease_on(connection, locked_by="'worker-3'")
    lease_on(connection, locked_by="'worker-3'", suspect="1")
    lease_on(connection, queue="'elsewhere'")
    run_in(connection, Status.QUEUED)
    assert queue.held(connection, WORKER, [Lane("default", 0)]) == own


def test_a_lane_is_looked_through_from_where_the_claim_began(connection: PgConnection) -> None:
    lease_on(connection, run_at="now() - interval '1 hour'")
    run = run_in(connection, Status.RUNNING)
    start = Position(run["run_at"], run["id"])
    assert queue.held(connection, WORKER, [Lane("default", 0, start)]) == [Lease(WORKER, run["id"], run["lease_no"])]
