"""The fork server: a process with one thread that forks the child of each isolated run, and kills overdue children.

Forking the worker would copy locks that its other threads hold, and starting an interpreter for each run would cost
half a second of processor time.  Forking this process, which has loaded only the handlers, is safe and takes
milliseconds.  If the worker is killed, this process kills all remaining children and then ends.
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
from rowcall.base.tracing import exporter
from rowcall.job_types import catalogue
from rowcall_worker.handlers import Handler, load_handlers
from rowcall_worker.isolation.channel import Channel, wait
from rowcall_worker.isolation.child import live

# A wait does not count the time in which the machine is suspended, but a lease does: look again this often.
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
    """Forks, watches and kills the children of one worker."""

    def __init__(self, control: socket.socket, handlers: Mapping[str, Handler], chosen: Settings) -> None:
        self._control = control
        self._handlers = handlers
        self._settings = chosen
        self._children: dict[int, Watched] = {}
        self._open = True
        # Each signal writes a byte here, so that the end of a child (SIGCHLD) ends the wait.
        self._bell, self._ringer = socket.socketpair()
        self._ringer.setblocking(False)
        signal.set_wakeup_fd(self._ringer.fileno(), warn_on_full_buffer=False)
        # Only the control channel ends this process: a signal to the whole process group must not kill children during
        # the worker's grace, and a worker's death closes the channel anyway.
        # Not SIG_IGN, which programs started by a handler would inherit.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def run(self) -> None:
        """Fork, watch and kill children until the worker is gone; then kill the remaining ones."""
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
            os.set_inheritable(descriptor, False)  # programs started by a handler must not inherit them
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
        # The child does this too, because either process may run first.
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
        """Reap ended children, kill the processes that they left behind, and report to the worker how they ended."""
        while self._children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:  # otherwise the process was started by a module during its import
                _end(pid)
                code = os.waitstatus_to_exitcode(status)
                child.channel.offer({"code": code, "peak_memory": usage.ru_maxrss * PEAK_UNIT})
                child.channel.close()


def _end(pid: int) -> None:
    """Kill a child and all processes in its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def main(worker: int, control: socket.socket) -> None:
    """Load the handlers, and serve this worker until it is gone."""
    # During loading, the kernel ends this process with the worker; after that, the closed channel does.
    die_with(worker, signal.SIGHUP)
    chosen = settings.read()
    logs.configure(chosen)
    handlers = load_handlers(catalogue(), chosen.app)
    exporter.load()
    # Memory that the garbage collector does not touch stays shared with the children.
    gc.freeze()
    ForkServer(control, handlers, chosen).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
