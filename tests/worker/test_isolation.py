"""Isolation: the worker's side of the fork server, in the test process."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from marshmallow import Schema

from rowcall.base.clock import elapsed
from rowcall.job_types import JobType
from rowcall.queue import Claimed
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.isolation.isolation import Isolation
from tests.support.processes import APPS, ROOT


@pytest.fixture
def isolation(module_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Isolation]:
    """Yield isolation without a fork server yet; those that it starts load the shop's handlers."""
    monkeypatch.setenv("DATABASE_URL", module_url)
    monkeypatch.setenv("ROWCALL_APP", "shop")
    monkeypatch.setenv("PYTHONPATH", f"{APPS}:{ROOT}")
    with closing(
        Isolation({"shop_isolated": JobType("shop_isolated", schema=Schema, isolated=True)}, module_url)
    ) as isolation:
        yield isolation


def sockets() -> set[int]:
    """Return this process's socket descriptors."""
    return {int(entry.name) for entry in Path("/proc/self/fd").iterdir() if entry.is_socket()}


def test_a_fork_server_that_hears_nothing_more_is_replaced_though_its_process_is_still_there(
    isolation: Isolation,
) -> None:
    before = sockets()
    isolation.start()
    [control] = sockets() - before
    with socket.socket(fileno=os.dup(control)) as far_end:
        far_end.shutdown(socket.SHUT_RDWR)
    second_attempt = Claimed(1, 2, "shop_isolated", {"ends": "hang"}, 2, 10, None)
    assert isolation.attempt(InFlightRun("worker-1", second_attempt, elapsed() + 60)) == AttemptResult()
