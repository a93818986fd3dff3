"""The heartbeat and claiming: nothing is claimed while leases cannot be renewed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.queue.workers import Registration
from rowcall_worker.runtime.claims.pace import Room
from rowcall_worker.runtime.connection import Link, Outage
from rowcall_worker.runtime.heartbeat import Heartbeat
from rowcall_worker.runtime.in_flight import InFlight

THREADS = 4
UNREACHABLE = "postgresql://me@127.0.0.1:1/none"


@pytest.fixture
def in_flight() -> InFlight:
    return InFlight(THREADS)


@pytest.fixture
def heart(in_flight: InFlight, module_url: str) -> Iterator[Heartbeat]:
    """Yield a worker's heartbeat, which has not been started."""
    worker = Registration("worker-1", "host", 1, "0", None, ["noop"], THREADS)
    heart = Heartbeat(in_flight, Link(module_url, "heartbeat", Outage()), worker, {"noop": 60.0}, 20.0)
    yield heart
    heart.link.close()


def test_nothing_is_claimed_while_the_heartbeat_has_no_connection(in_flight: InFlight, heart: Heartbeat) -> None:
    reachable, heart.link = heart.link, Link(UNREACHABLE, "heartbeat", Outage())
    heart.tick()
    assert in_flight.reserve() == Room(0, 0)
    waker = in_flight.wake_ups.waker()
    waker.clear()
    heart.link = reachable
    heart.tick()
    assert waker.is_set()
    assert in_flight.reserve() == Room(THREADS, 0)


def test_the_producers_wait_for_its_first_connection(in_flight: InFlight, heart: Heartbeat) -> None:
    heart.link = Link(UNREACHABLE, "heartbeat", Outage())
    heart.start()
    assert in_flight.reserve() == Room(0, 0)
    heart.stop(10)
