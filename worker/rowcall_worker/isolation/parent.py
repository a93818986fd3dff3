"""Isolation: a run in a child process, as the thread sees it that waits for it.

The thread hands the run over, keeps the child informed of its lease, and turns its end into the same outcome as any
other.  The nursery (worker/nursery.py) makes the child, and ends it at the time that the thread last named.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from rowcall.base.clock import elapsed
from rowcall.base.errors import ChildDied, LeaseLost, NoChild, RowcallError, TimeLimitExceeded
from rowcall.job_types import JobType
from rowcall.status import Event
from rowcall_worker.attempt.result import AttemptError, error_of, failure_of
from rowcall_worker.isolation.channel import Channel, wait
from rowcall_worker.runtime.in_flight import InFlightRun, Outcome

# How soon a child learns what the heartbeat has learnt.
TICK_SECONDS = 0.1

# How long a child whose lease is lost may take to notice by itself; nothing it does then counts.
NOTICE_SECONDS = 1.0

# How long a child may take to begin: the nursery may just be loading the handlers, on a busy machine.
START_SECONDS = 60.0

# How long to wait for what takes milliseconds, before it is taken for broken.
PATIENCE_SECONDS = 5.0
PATIENCE_LOOKS = PATIENCE_SECONDS / TICK_SECONDS

FORK_SERVER_ENDED = "the process that starts and watches the children has ended"


class Isolation:
    """The nursery's other side."""

    def __init__(self, types: Mapping[str, JobType], worker: str, url: str) -> None:
        self._types = {name: kind for name, kind in types.items() if kind.isolated}
        self._worker = worker
        self._url = url
        self._fork_server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._under_way: set[InFlightRun] = set()
        self._closed = False
        self._changed = threading.Condition()

    def start(self) -> None:
        """Let the nursery load while nothing is due yet; without it, the first run would wait for that."""
        if self._types:
            with self._changed:
                self._running_fork_server()

    def attempt(self, run: InFlightRun) -> Outcome:
        """Have the run attempted in a child process."""
        try:
            return self._supervised(run)
        except Exception as error:
            # Also what the machine refuses, such as one more socket: it ends the attempt, not this thread.
            return Outcome(run, verdict=error_of(error))
        finally:
            with self._changed:
                self._under_way.discard(run)
                self._changed.notify_all()

    def close(self) -> None:
        """End all children, whose runs are about to be given back, and the nursery with them."""
        with self._changed:
            self._closed = True
            for run in self._under_way:
                run.settled = True
            self._changed.wait_for(lambda: not self._under_way, PATIENCE_SECONDS)
            self._end_fork_server()

    def _supervised(self, run: InFlightRun) -> Outcome:
        """Two channels for each child: to talk with it, and for the nursery's word on its end.  Closed, they end it."""
        talk, childs_end = socket.socketpair()
        line, fork_servers_end = socket.socketpair()
        with talk, line:
            with childs_end, fork_servers_end:
                fork_server = self._hand_over(run, childs_end, fork_servers_end)
            escort = ChildMonitor(run, self._types[run.claimed.job_type], Channel(talk), Channel(line), fork_server)
            return escort.supervise(self._worker, self._url)

    def _hand_over(self, run: InFlightRun, *ends: socket.socket) -> subprocess.Popen[bytes]:
        """Order a child at these ends of our channels; a nursery that has died is replaced."""
        with self._changed:
            if self._closed:
                run.settled = True
                raise NoChild(run.claimed.run_id, "the worker is stopping")
            self._under_way.add(run)
            try:
                fork_server, control = self._running_fork_server()
                socket.send_fds(control, [b"+"], [end.fileno() for end in ends])
            except OSError as error:
                raise NoChild(run.claimed.run_id, str(error)) from None
            return fork_server

    def _running_fork_server(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._fork_server is None or self._control is None or self._fork_server.poll() is not None:
            self._end_fork_server()
            self._control, theirs = socket.socketpair()
            with theirs:
                self._fork_server = subprocess.Popen(
                    # -P: a module of the team's in the working folder must not take the place of one of ours.
                    [
                        sys.executable,
                        "-P",
                        "-m",
                        "rowcall_worker.isolation.fork_server",
                        str(os.getpid()),
                        str(theirs.fileno()),
                    ],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    # Ctrl-C goes to the terminal's group, and is the worker's to answer.
                    start_new_session=True,
                )
        return self._fork_server, self._control

    def _end_fork_server(self) -> None:
        if self._fork_server is None or self._control is None:
            return
        self._control.close()
        # Ends it while it is still loading, and not later: by then the closed channel is enough.
        self._fork_server.send_signal(signal.SIGHUP)
        try:
            self._fork_server.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._fork_server.kill()
            self._fork_server.wait()
        self._fork_server = self._control = None


class ChildMonitor:
    """What a thread does for one child process, from its order to its end."""

    def __init__(
        self, run: InFlightRun, kind: JobType, talk: Channel, line: Channel, fork_server: subprocess.Popen[bytes]
    ) -> None:
        self._run = run
        self._kind = kind
        self._talk = talk
        self._line = line
        self._fork_server = fork_server
        self._ordered_at = elapsed()
        self._begun_at: float | None = None
        self._lost_at: float | None = None
        self._given_back_at: float | None = None
        self._told: dict[str, Any] | None = None
        self._until: float | None = None
        self._looks_too_late = 0
        self._progress: str | None = None
        self._answer: dict[str, Any] | None = None
        self._last_words: list[bytes] = []
        self._end: dict[str, Any] = {}

    def supervise(self, worker: str, url: str) -> Outcome:
        """Send the run, go along until the child has ended, and say what came of it."""
        # Where nobody is there to take it, the line tells why.
        with contextlib.suppress(OSError):
            self._talk.send(self._order(worker, url))
        while self._line.open:
            self._inform()
            ready = wait([end for end in (self._talk, self._line) if end.open], TICK_SECONDS)
            if self._talk in ready:
                self._hear_child()
            if self._line in ready:
                self._hear_fork_server()
            elif self._until is not None and elapsed() > self._until:
                self._insist()
        while self._talk.open and wait([self._talk], 0):
            self._hear_child()
        self._run.forensics = json.dumps(self._forensics())
        if self._answer is None:
            return Outcome(self._run, verdict=self._verdict())
        verdict = self._answer["verdict"] and AttemptError.unpacked(self._answer["verdict"])
        return Outcome(self._run, self._answer["result"], verdict, self._answer["finished"])

    def _order(self, worker: str, url: str) -> dict[str, Any]:
        claimed = self._run.claimed
        moment = claimed.scheduled_for
        return {
            "worker": worker,
            "url": url,
            "claimed": {**claimed._asdict(), "scheduled_for": moment and moment.isoformat()},
            "deadline": self._run.deadline,
            "memory_cap": self._kind.memory_cap,
        }

    def _inform(self) -> None:
        """Tell the child what the heartbeat has learnt, and the nursery until when the child may live."""
        run = self._run
        if run.lost and self._lost_at is None:
            self._lost_at = elapsed()
        if run.settled and self._given_back_at is None:
            self._given_back_at = elapsed()
        told = {"deadline": run.deadline, "lost": run.lost, "cancel_requested": run.cancel_requested}
        if told != self._told and self._talk.offer(told):
            self._told = told
        until = min(bound for bound, _ in self._bounds())
        if until != self._until and self._line.offer(until):
            self._until = until

    def _insist(self) -> None:
        """The nursery should have ended the child by now: if it goes on failing to, end both by ending it."""
        # Looks are counted, and not seconds: while this process was stopped, so may have been the nursery.
        self._looks_too_late += 1
        if self._looks_too_late > PATIENCE_LOOKS:
            self._fork_server.kill()

    def _bounds(self) -> Iterator[tuple[float, RowcallError]]:
        """Until when the child may live at the most, and what it means when it did."""
        run_id, lease_no = self._run.key
        lease_ends = self._run.deadline if self._lost_at is None else self._lost_at
        yield lease_ends + NOTICE_SECONDS, LeaseLost(run_id, lease_no)
        if self._given_back_at is not None:
            yield self._given_back_at, LeaseLost(run_id, lease_no)
        if self._begun_at is None:
            yield self._ordered_at + START_SECONDS, NoChild(run_id, f"none began within {START_SECONDS:g} seconds")
        elif self._kind.time_limit is not None:
            limit = self._kind.time_limit
            yield self._begun_at + limit, TimeLimitExceeded(self._kind.name, limit)

    def _hear_child(self) -> None:
        for line in self._talk.read():
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                # What the interpreter wrote when a fatal signal struck, perhaps behind half a message.
                self._last_words.append(line)
                continue
            self._begun_at = message.get("begun", self._begun_at)
            self._answer = message.get("answer", self._answer)
            if "progress" in message:
                self._run.progress = self._progress = message["progress"]

    def _hear_fork_server(self) -> None:
        for line in self._line.read():
            self._end = json.loads(line)

    def _verdict(self) -> AttemptError:
        """What it means that the child has ended without an answer."""
        run_id = self._run.claimed.run_id
        if "code" not in self._end:
            return error_of(NoChild(run_id, self._end.get("refused", FORK_SERVER_ENDED)))
        overdue = [error for bound, error in self._bounds() if bound <= elapsed()]
        if overdue and self._end["code"] == -signal.SIGKILL:
            return error_of(overdue[0])
        words = b"\n".join(self._last_words).decode(errors="replace")
        return AttemptError(Event.FAIL, failure_of(ChildDied(run_id, self._end["code"], self._signal()), stack=words))

    def _signal(self) -> str:
        """The name of the signal that ended the child; empty when none did."""
        code = self._end.get("code", 0)
        if code >= 0:
            return ""
        known = {number.value: number.name for number in signal.Signals}
        return known.get(-code, f"SIG{-code}")

    def _forensics(self) -> dict[str, Any]:
        """What is known of the child's end, for whoever looks into a failed attempt."""
        since = self._ordered_at if self._begun_at is None else self._begun_at
        known: dict[str, Any] = {"seconds": round(elapsed() - since, 3)}
        if self._progress is not None:
            known["last_progress"] = json.loads(self._progress)
        if "code" in self._end:
            name = self._signal()
            known |= {"signal": name} if name else {"exit_code": self._end["code"]}
            known["peak_memory"] = self._end["peak_memory"]
        return known
