"""The child process of an isolated run."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from rowcall.base import logs
from rowcall.base.clock import elapsed
from rowcall.base.errors import MemoryCapExceeded
from rowcall.base.settings import Settings
from rowcall.base.tracing import exporter
from rowcall.base.watched import Answers
from rowcall.queue import Claimed, LogLine
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.context import Run
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.run_log import LogBuffer
from rowcall_worker.attempt.runner import Runner
from rowcall_worker.handlers import Handler
from rowcall_worker.isolation.channel import Channel


class SentLog(LogBuffer):
    """The log inside the child process: each line is sent at once, and kept for `run.transaction()`."""

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def keeps(self, line: LogLine) -> None:
        """Send a new line at once, because it may be the last message of this process."""
        # Without its worker, this process is about to end.
        with suppress(OSError):
            self._channel.send({"log": line})


class ChildRun(InFlightRun):
    """The run inside its child process: the worker keeps it up to date, and progress is sent at once."""

    __slots__ = ("_channel",)

    def __init__(self, order: Mapping[str, Any], channel: Channel) -> None:
        self._channel = channel
        super().__init__(order["worker"], claimed_from(order["claimed"]), order["deadline"])
        self.log = SentLog(channel)

    @property
    def progress(self) -> str | None:
        """Always None, because progress is sent and not kept."""
        return None

    @progress.setter
    def progress(self, progress: str | None) -> None:
        # At once, because it may be the last message of this process.
        if progress is not None:
            self._channel.send({"progress": progress})

    def listen(self) -> None:
        """Receive what the worker learns about the lease, as long as this process is alive."""
        while self._channel.open:
            for line in self._channel.read():
                news = json.loads(line)
                self.deadline = news["deadline"]
                self.lost = news["lost"]
                self.cancel_requested = news["cancel_requested"]


def live(channel: Channel, handlers: Mapping[str, Handler], settings: Settings) -> None:
    """Attempt the run that the worker sends, and send the result."""
    order = _order(channel)
    run = ChildRun(order, channel)
    job_type = run.claimed.job_type
    logs.RUN.set((run.lease.run_id, run.lease.lease_no))
    # At a fatal signal, the stack is also written to the worker, as lines that are not JSON.
    faulthandler.enable(channel.fileno(), all_threads=False)
    threading.Thread(target=run.listen, name="listen", daemon=True).start()
    flush = exporter.configure("rowcall-worker")
    handler = _capped(handlers[job_type], order["memory_cap"])
    answers = Answers()
    answers.keep()
    connections = Connections(order["url"], answers)
    runner = Runner.of({job_type: handler}, connections, settings)
    channel.send({"begun": elapsed()})
    process = os.getpid()
    result = runner.attempt(run)
    # This is a process that the handler forked: only its parent may send the result.
    if os.getpid() != process:
        os._exit(1)
    channel.send({"result": result.packed()})
    flush()


def claimed_from(fields: Mapping[str, Any]) -> Claimed:
    """The claim that the worker sent."""
    moment = fields["scheduled_for"]
    return Claimed(**{**fields, "scheduled_for": moment and datetime.fromisoformat(moment)})


def _order(channel: Channel) -> dict[str, Any]:
    lines: list[bytes] = []
    while not lines:
        lines = channel.read()
    order: dict[str, Any] = json.loads(lines[0])
    return order


def _capped(handler: Handler, mebibytes: int | None) -> Handler:
    """Return the handler, with a cap on its memory."""
    if mebibytes is None:
        return handler

    def capped(run: Run) -> Any:
        try:
            with _memory_cap(mebibytes * 2**20):
                return handler(run)
        except MemoryError as error:
            raise MemoryCapExceeded(run.job_type, mebibytes) from error

    return capped


@contextmanager
def _memory_cap(size: int) -> Iterator[None]:
    """Cap the memory until the end of the block; reporting the error needs memory too.

    RLIMIT_DATA counts writable private memory.  RLIMIT_AS would also count reserved addresses: threads and libraries
    reserve hundreds of megabytes and use little of them.  Checking the resident size now and then would react too late.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
