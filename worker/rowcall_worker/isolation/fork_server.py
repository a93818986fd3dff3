"""The fork server: a process with one thread that makes the child of each isolated run, and ends what is overdue.

A fork of the worker would copy locks that its other threads hold, and a new interpreter for each run would cost half a
second of processor time; a fork of this process, which has the handlers loaded and nothing else, is safe and costs
milliseconds.  It outlives a worker that is killed just long enough to end every process group that is left.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.base import logs, settings
from rowcall.base.child_processes import die_with
from rowcall.base.clock import elapsed
from rowcall.base.settings import Settings
from rowcall.job_types import catalogue
from rowcall_worker.handlers import Handler, load_handlers
from rowcall_worker.isolation.channel import Channel, wait
from rowcall_worker.isolation.child import live

# Waiting does not count the time in which the machine is suspended, but leases do: look again this often.
LOOK_SECONDS = 1.0

# Unit of wait4's ru_maxrss, in bytes.
PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass
class Watched:
    """A child, its deadline, and the channel on which the worker's thread changes the deadline."""

    channel: Channel
    until: float = math.inf

    def hear(self) -> None:
        """Take the newest deadline; if the other end is closed, the time of the child is over."""
        for line in self.channel.read():
            self.until = float(line)
        if not self.channel.open:
            self.until = 0.0


class ForkServer:
    """The children of one worker."""

    def __init__(self, control: socket.socket, handlers: Mapping[str, Handler], chosen: Settings) -> None:
        self._control = control
        self._handlers = handlers
        self._settings = chosen
        self._children: dict[int, Watched] = {}
        self._open = True
        # A byte arrives here whenever a signal does, so that the end of a child ends the wait.
        self._bell, self._ringer = socket.socketpair()
        self._ringer.setblocking(False)
        signal.set_wakeup_fd(self._ringer.fileno(), warn_on_full_buffer=False)
        # Only the control channel says when to end: a signal to the whole group of processes must not end children that
        # a worker still gives its grace, and a worker's death closes the channel anyway.
        # Not SIG_IGN, which the programs that a handler starts would inherit.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def run(self) -> None:
        """Make, watch and end children until the worker is gone; then end all of them."""
        while self._open:
            self.run_once()
        for pid in self._children:
            _end(pid)
        # A signal may still come, and its descriptor is about to close.
        signal.set_wakeup_fd(-1)

    def run_once(self) -> None:
        """Wait for an order, a new deadline, the end of a child or the end of its time, and act on it."""
        channels = {child.channel: child for child in self._children.values() if child.channel.open}
        for ready in wait([self._control, self._bell, *channels], self._patience()):
            if isinstance(ready, Channel):
                channels[ready].hear()
            elif ready is self._bell:
                self._bell.recv(4096)
            else:
                self._take_order()
        self._report_ended()
        for pid, child in self._children.items():
            if child.until <= elapsed():
                _end(pid)
                child.until = math.inf  # once is enough

    def _patience(self) -> float | None:
        if not self._children:
            return None
        return max(0.0, min(LOOK_SECONDS, *(child.until - elapsed() for child in self._children.values())))

    def _take_order(self) -> None:
        """Take an order: a byte with two descriptors, the child's channel to the worker and our own about the child."""
        message, descriptors, *_ = socket.recv_fds(self._control, 1, 2)
        self._open = bool(message)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # no program that a handler starts needs them
        ends = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if len(ends) == 2:
            self._make_child(*ends)
        for end in ends[:1]:
            end.close()

    def _make_child(self, talk: socket.socket, watch: socket.socket) -> None:
        fork_server = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            Channel(watch).send({"refused": f"the machine allows no more processes ({error.strerror})"})
            watch.close()
            return
        if pid == 0:
            watch.close()
            self._be_child(fork_server, talk)
        # Also done by the child, because either may come first.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        self._children[pid] = Watched(Channel(watch))

    def _be_child(self, fork_server: int, talk: socket.socket) -> None:
        """Become the child: keep only the handlers, run, and never return."""
        code = 1
        try:
            # Its own process group, including whatever the handler starts, so that all of it can be killed at once.
            os.setpgid(0, 0)
            die_with(fork_server, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            for end in (self._control, self._bell, self._ringer):
                end.close()
            for child in self._children.values():
                child.channel.close()
            live(Channel(talk), self._handlers, self._settings)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _report_ended(self) -> None:
        """Reap the children that have ended, kill what they left behind, and tell the worker how they ended."""
        while self._children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:  # else a program that some module started while it was loaded
                _end(pid)
                code = os.waitstatus_to_exitcode(status)
                child.channel.offer({"code": code, "peak_memory": usage.ru_maxrss * PEAK_UNIT})
                child.channel.close()


def _end(pid: int) -> None:
    """Kill a child and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def main(worker: int, control: socket.socket) -> None:
    """Load what the children need, and serve this worker until it is gone."""
    # While we load, the kernel ends us with it; from then on the closed channel tells us.
    die_with(worker, signal.SIGHUP)
    chosen = settings.read()
    logs.configure(chosen)
    handlers = load_handlers(catalogue(), chosen.app)
    # Memory that the garbage collector does not touch stays shared with the children.
    gc.freeze()
    ForkServer(control, handlers, chosen).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
