"""The processes that `up` starts: watched while they run, and stopped in reverse order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rowcall.base.child_processes import dies_with_us, own_command
from rowcall.base.errors import RowcallError
from rowcall.cli.up.reports import Reports

# How long the processes have to stop.
STOP_SECONDS = 10.0

# How often to check whether one has ended.
POLL_SECONDS = 0.05

# Look whether one has ended, without waiting for it, and leave its exit code to wait().
LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT


@dataclass(frozen=True)
class Child:
    """A `rowcall` command that runs until `rowcall up` ends."""

    command: str
    process: subprocess.Popen[bytes]
    hint: str

    def check(self) -> None:
        """Raise an error if the process has ended by itself."""
        # Not poll() while it runs: poll() takes a lock, and wait() would hang if Stop was raised before its release.
        if self.process.returncode is None and not os.waitid(os.P_PID, self.process.pid, LOOK):
            return
        code = self.process.poll()
        if code is not None and code < 0:  # it could not say why
            raise RowcallError(f"`{self.command}` was killed by signal {-code}; start `rowcall up` again")
        if code is not None:
            raise RowcallError(f"`{self.command}` exited with code {code}; {self.hint}")


def start_child(
    arguments: Sequence[str],
    if_we_die: signal.Signals,
    reports: Reports,
    environment: Mapping[str, str] | None = None,
    handed: Sequence[int] = (),
) -> Child:
    """Start a `rowcall` command in a new session, so that the terminal's Ctrl-C reaches only this process."""
    process = subprocess.Popen(
        own_command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=reports.errors_of(arguments[0]),
        env={**reports.environment, **os.environ, **(environment or {})},
        start_new_session=True,
        pass_fds=handed,
        preexec_fn=dies_with_us(if_we_die),
    )
    return Child(" ".join(["rowcall", *arguments]), process, reports.hint)


def wait(children: Sequence[Child]) -> None:
    """Wait for a signal; raise an error if a child ends by itself."""
    while True:
        check_all(children)
        time.sleep(POLL_SECONDS)  # signals interrupt the sleep; Python cannot wait for several children at once


def check_all(children: Sequence[Child]) -> None:
    """Raise an error if a child has ended by itself."""
    for child in children:
        child.check()


def stop_children(started: Sequence[Child]) -> None:
    """Stop the children, the worker first, so that it can still release its runs."""
    children = [child.process for child in started]
    for child in reversed(children):
        child.terminate()
    until = time.monotonic() + STOP_SECONDS
    for child in children:
        try:
            child.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
