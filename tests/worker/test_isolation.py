"""Isolation: the worker's side of the fork server, in the test process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
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
from rowcall_worker.isolation.channel import Channel
from rowcall_worker.isolation.child_monitor import ChildMonitor
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


def test_an_attempt_whose_fork_server_is_ending_ends_after_it_so_that_the_next_attempt_has_another() -> None:
    claimed = Claimed(1, 1, "shop_isolated", {}, 1, 10, None)
    ending = subprocess.Popen([sys.executable, "-c", "pass"])
    talk, watch = socket.socketpair(), socket.socketpair()
    for end in (talk[1], watch[1]):
        end.close()
    with talk[0], watch[0]:
        job_type = JobType("shop_isolated", schema=Schema, isolated=True)
        run = InFlightRun("worker-1", claimed, elapsed() + 60)
        result = ChildMonitor(run, job_type, Channel(talk[0]), Channel(watch[0]), ending).supervise("")
    assert result.error is not None
    assert result.error.failure.error_type == "NoChild"
    assert ending.returncode == 0


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
