"""The watchdog: time limits are kept even while everything waits for the database."""

from __future__ import annotations

import threading

import pytest

from rowcall.base.clock import elapsed
from rowcall.queue import Claimed
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime.executor import Executor
from rowcall_worker.runtime.in_flight import InFlight
from rowcall_worker.runtime.watchdog import Watchdog
from tests.support.logged import logged
from tests.support.processes import running, wait_until
from tests.support.shop import Shop

HEARTBEATS_WAITING = (
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'rowcall worker heartbeat' AND wait_event = 'PgSleep'"
    " AND datname = current_database()"
)

# Let each heartbeat take an hour.
SLOW_HEARTBEATS = """
CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE UPDATE ON rowcall.workers FOR EACH ROW
WHEN (NEW.heartbeat_at <> OLD.heartbeat_at) EXECUTE FUNCTION be_slow()
"""


class Stuck:
    """A handler that works until it is released; `begun` lists its runs in order."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.free = threading.Event()

    def attempt(self, run: InFlightRun) -> AttemptResult:
        self.begun.append(run.lease.run_id)
        self.free.wait()
        return AttemptResult()


@pytest.fixture
def in_flight() -> InFlight:
    return InFlight(threads=1)


def begin(in_flight: InFlight, stuck: Stuck, number: int) -> InFlightRun:
    """Return a run whose handler has started."""
    run = InFlightRun("worker-1", Claimed(number, 1, "noop", {}, 1, 10, None), elapsed() + 60)
    in_flight.accept(0, [run])
    wait_until(lambda: number in stuck.begun, "a thread has started the run")
    return run


def test_an_attempt_beyond_its_limit_has_failed_and_another_thread_takes_the_place_of_its_own(
    in_flight: InFlight,
) -> None:
    stuck = Stuck()
    watchdog = Watchdog(in_flight, Executor(in_flight, {"noop": stuck.attempt}), {"noop": 0.0})
    first = begin(in_flight, stuck, 1)
    watchdog.tick()
    [ended] = in_flight.collect()
    assert (ended, first.lost) == (first, True)
    assert ended.result.error is not None
    assert ended.result.error.failure.error_type == "TimeLimitExceeded"
    begin(in_flight, stuck, 2)
    stuck.free.set()


def test_without_a_limit_or_within_it_an_attempt_goes_on(in_flight: InFlight) -> None:
    stuck = Stuck()
    executor = Executor(in_flight, {"noop": stuck.attempt})
    run = begin(in_flight, stuck, 1)
    Watchdog(in_flight, executor, {}).tick()
    Watchdog(in_flight, executor, {"noop": 3600.0}).tick()
    assert not run.settled
    stuck.free.set()


def test_limits_are_kept_while_the_heartbeat_waits_for_the_database(
    environment: dict[str, str], fresh_url: str
) -> None:
    shop = Shop(environment, fresh_url)
    with running(shop.environment, "worker", "run", "--grace", "0"):
        shop.wait_for_workers(1)
        shop.sql(SLOW_HEARTBEATS)
        wait_until(lambda: shop.sql(HEARTBEATS_WAITING), "the heartbeat waits for a slow server")
        run = shop.wait(shop.ask("shop_limited"), "failed")
        assert run["error_type"] == "TimeLimitExceeded"
        assert shop.sql(HEARTBEATS_WAITING)


def test_a_lease_that_nobody_could_renew_in_time_is_lost_without_asking_the_database(in_flight: InFlight) -> None:
    over, going_on, ended = (
        InFlightRun("worker-1", Claimed(number, 1, "noop", {}, 1, 10, None), elapsed() + seconds)
        for number, seconds in ((1, -1), (2, 60), (3, -1))
    )
    in_flight.accept(0, [over, going_on, ended])
    in_flight.settle(ended, AttemptResult())
    with logged() as lines:
        for _ in range(2):
            Watchdog(in_flight, Executor(InFlight(threads=0), {}), {}).tick()
    assert [run.lost for run in (over, going_on, ended)] == [True, False, False]
    assert [(line["event"], line["run_id"]) for line in lines] == [("lease lost", 1)]
    over.renewed(elapsed() + 60)
    over.renewed(elapsed() + 30)
    assert over.deadline > elapsed() + 50
