"""The child monitor: supervises one child process in a worker's thread.

It sends the run to the child, keeps it informed about its lease, and turns its end into a result.  The fork server
forks the child, and kills it at the deadline that the monitor last sent.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

from rowcall.base.clock import elapsed
from rowcall.base.errors import ChildDied, LeaseLost, NoChild, RowcallError, TimeLimitExceeded
from rowcall.job_types import JobType
from rowcall.queue import LogLine
from rowcall.status import Event
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptError, AttemptResult, failure_of
from rowcall_worker.isolation.channel import Channel, wait

# How long a fork server whose channels are closed may take to end.
END_SECONDS = 5.0

# How soon a child learns what the heartbeat has learned.
TICK_SECONDS = 0.1

# How long a child whose lease is lost may take to stop by itself; its result no longer counts.
NOTICE_SECONDS = 1.0

# How long a child may take to begin: the fork server may still be loading handlers on a busy machine.
START_SECONDS = 60.0

# How often a child may be found alive beyond its time before the fork server counts as broken.
LATE_LOOKS_MOST = 50

FORK_SERVER_ENDED = "the process that starts children has ended"


class ChildMonitor:
    """One child process, as seen by the thread that waits for it."""

    def __init__(
        self,
        run: InFlightRun,
        job_type: JobType,
        talk: Channel,
        watch: Channel,
        fork_server: subprocess.Popen[bytes],
    ) -> None:
        self._run = run
        self._job_type = job_type
        self._talk = talk
        self._watch = watch
        self._fork_server = fork_server
        self._ordered_at = elapsed()
        self._begun_at: float | None = None
        self._lost_at: float | None = None
        self._settled_at: float | None = None
        self._sent: dict[str, Any] | None = None
        self._until: float | None = None
        self._late_looks = 0
        self._progress: str | None = None
        self._result: AttemptResult | None = None
        self._last_words: list[bytes] = []
        self._end: dict[str, Any] = {}

    def supervise(self, url: str) -> AttemptResult:
        """Send the run, keep the child informed until it ends, and return the result."""
        # If the fork server is gone, its error says why.
        with contextlib.suppress(OSError):
            self._talk.send(self._order(url))
        while self._watch.open:
            self._inform()
            ready = wait([end for end in (self._talk, self._watch) if end.open], TICK_SECONDS)
            if self._talk in ready:
                self._hear_child()
            if self._watch in ready:
                self._hear_fork_server()
            elif self._until is not None and elapsed() > self._until:
                self._insist()
        while self._talk.open and wait([self._talk], 0):
            self._hear_child()
        self._run.forensics = json.dumps(self._forensics())
        return self._without_result() if self._result is None else self._result

    def _order(self, url: str) -> dict[str, Any]:
        claimed = self._run.claimed
        moment = claimed.scheduled_for
        return {
            "worker": self._run.lease.worker,
            "url": url,
            "claimed": {**claimed._asdict(), "scheduled_for": moment and moment.isoformat()},
            "deadline": self._run.deadline,
            "memory_cap": self._job_type.memory_cap,
        }

    def _inform(self) -> None:
        """Send the heartbeat's news to the child, and the child's deadline to the fork server."""
        run = self._run
        if run.lost and self._lost_at is None:
            self._lost_at = elapsed()
        if run.settled and self._settled_at is None:
            self._settled_at = elapsed()
        news = {"deadline": run.deadline, "lost": run.lost, "cancel_requested": run.cancel_requested}
        if news != self._sent and self._talk.offer(news):
            self._sent = news
        until = min(bound for bound, _ in self._bounds())
        if until != self._until and self._watch.offer(until):
            self._until = until

    def _insist(self) -> None:
        """Kill the child, and the fork server too, if the fork server fails to kill an overdue child."""
        # Count checks, not seconds: while this process was stopped, the fork server may have been stopped too.
        self._late_looks += 1
        if self._late_looks > LATE_LOOKS_MOST:
            self._fork_server.kill()

    def _bounds(self) -> Iterator[tuple[float, RowcallError]]:
        """The latest times at which the child must end, each with the reason."""
        _, run_id, lease_no = self._run.lease
        lease_ends = self._run.deadline if self._lost_at is None else self._lost_at
        yield lease_ends + NOTICE_SECONDS, LeaseLost(run_id, lease_no)
        if self._settled_at is not None:
            yield self._settled_at, LeaseLost(run_id, lease_no)
        if self._begun_at is None:
            yield self._ordered_at + START_SECONDS, NoChild(run_id, f"none began within {START_SECONDS:g} seconds")
        elif self._job_type.time_limit is not None:
            limit = self._job_type.time_limit
            yield self._begun_at + limit, TimeLimitExceeded(self._job_type.name, limit)

    def _hear_child(self) -> None:
        for line in self._talk.read():
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                # What the interpreter wrote at a fatal signal, perhaps after half a message.
                self._last_words.append(line)
                continue
            self._begun_at = message.get("begun", self._begun_at)
            if "progress" in message:
                self._run.progress = self._progress = message["progress"]
            if "log" in message:
                self._run.begin_log().put(LogLine(*message["log"]))
            if "result" in message:
                self._result = AttemptResult.unpacked(message["result"])

    def _hear_fork_server(self) -> None:
        for line in self._watch.read():
            self._end = json.loads(line)

    def _without_result(self) -> AttemptResult:
        """The result for a child that ended without sending one."""
        run_id = self._run.claimed.run_id
        if not self._end:
            # If the fork server is ending, an order sent before its end would be lost, and the next attempt with it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._fork_server.wait(END_SECONDS)
        if "code" not in self._end:
            return AttemptResult.of_error(NoChild(run_id, self._end.get("refused", FORK_SERVER_ENDED)))
        overdue = [error for bound, error in self._bounds() if bound <= elapsed()]
        if overdue and self._end["code"] == -signal.SIGKILL:
            return AttemptResult.of_error(overdue[0])
        words = b"\n".join(self._last_words).decode(errors="replace")
        died = ChildDied(run_id, self._end["code"], self._signal())
        return AttemptResult(error=AttemptError(Event.FAIL, failure_of(died, stack=words)))

    def _signal(self) -> str:
        """Return the name of the signal that ended the child, or an empty string."""
        code = self._end.get("code", 0)
        if code >= 0:
            return ""
        known = {number.value: number.name for number in signal.Signals}
        return known.get(-code, f"SIG{-code}")

    def _forensics(self) -> dict[str, Any]:
        """Return details of the child's end, for examining a failed attempt."""
        since = self._ordered_at if self._begun_at is None else self._begun_at
        known: dict[str, Any] = {"seconds": round(elapsed() - since, 3)}
        if self._progress is not None:
            known["last_progress"] = json.loads(self._progress)
        if "code" in self._end:
            name = self._signal()
            known |= {"signal": name} if name else {"exit_code": self._end["code"]}
            known["peak_memory"] = self._end["peak_memory"]
        return known
