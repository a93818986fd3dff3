"""Isolation: runs are attempted in child processes, which a fork server makes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping

from rowcall.base.errors import NoChild
from rowcall.job_types import JobType
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.isolation.channel import Channel
from rowcall_worker.isolation.child_monitor import ChildMonitor

# How long to wait for something that should take milliseconds before treating it as broken.
PATIENCE_SECONDS = 5.0


class Isolation:
    """The worker's side: keeps the fork server running, and orders a child for each run."""

    def __init__(self, types: Mapping[str, JobType], url: str) -> None:
        self._types = {name: job_type for name, job_type in types.items() if job_type.isolated}
        self._url = url
        self._fork_server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._under_way: set[InFlightRun] = set()
        self._closed = False
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start the fork server early; otherwise the first run would wait while it loads."""
        if self._types:
            with self._changed:
                self._running_fork_server()

    def attempt(self, run: InFlightRun) -> AttemptResult:
        """Attempt the run in a child process."""
        try:
            return self._supervised(run)
        except Exception as error:
            # Also if the machine refuses something, such as a socket: the error ends the attempt, not this thread.
            return AttemptResult.of_error(error)
        finally:
            with self._changed:
                self._under_way.discard(run)
                self._changed.notify_all()

    def close(self) -> None:
        """End the fork server and all children, whose runs are about to be released."""
        with self._changed:
            self._closed = True
            for run in self._under_way:
                run.settled = True
            self._changed.wait_for(lambda: not self._under_way, PATIENCE_SECONDS)
            self._end_fork_server()

    def _supervised(self, run: InFlightRun) -> AttemptResult:
        """Attempt the run with a channel to its child and one to the fork server; closing them ends the child."""
        talk, childs_end = socket.socketpair()
        watch, fork_servers_end = socket.socketpair()
        with talk, watch:
            with childs_end, fork_servers_end:
                fork_server = self._order_child(run, childs_end, fork_servers_end)
            job_type = self._types[run.claimed.job_type]
            return ChildMonitor(run, job_type, Channel(talk), Channel(watch), fork_server).supervise(self._url)

    def _order_child(self, run: InFlightRun, *ends: socket.socket) -> subprocess.Popen[bytes]:
        """Order a child with these channels; replace the fork server if it has died."""
        with self._changed:
            if self._closed:
                run.settled = True
                raise NoChild(run.claimed.run_id, "the worker is stopping")
            self._under_way.add(run)
            try:
                return self._order(*ends)
            except OSError:
                # The fork server has just died: its channel is closed, but its process is not reaped yet.
                self._end_fork_server()
            try:
                return self._order(*ends)
            except OSError as error:
                raise NoChild(run.claimed.run_id, str(error)) from None

    def _order(self, *ends: socket.socket) -> subprocess.Popen[bytes]:
        fork_server, control = self._running_fork_server()
        socket.send_fds(control, [b"+"], [end.fileno() for end in ends])
        return fork_server

    def _running_fork_server(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._fork_server is None or self._control is None or self._fork_server.poll() is not None:
            self._end_fork_server()
            self._control, theirs = socket.socketpair()
            # -P: a module in the working folder must not shadow one that is installed.
            command = [sys.executable, "-P", "-m", "rowcall_worker.isolation.fork_server"]
            with theirs:
                self._fork_server = subprocess.Popen(
                    [*command, str(os.getpid()), str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    # Ctrl-C must reach only the worker, which decides what it means.
                    start_new_session=True,
                )
        return self._fork_server, self._control

    def _end_fork_server(self) -> None:
        if self._fork_server is None or self._control is None:
            return
        self._control.close()
        # Ends it while it is still loading; later the closed channel is enough.
        self._fork_server.send_signal(signal.SIGHUP)
        try:
            self._fork_server.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._fork_server.kill()
            self._fork_server.wait()
        self._fork_server = self._control = None
