"""The scheduler: a thread with its own connection that checks alerts, processes due times, and counts failed attempts.

Every worker ticks, and the one whose tick is recorded also counts failures.  `run` ticks at the next nominal time or
after the poll interval, whichever is earlier, to notice changed definitions.  `once` ticks until nothing is left to
process or its time is up, while other threads perform due runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from rowcall.alerts import Pings, Watch
from rowcall.base.clock import elapsed
from rowcall.base.logs import LogEvent, log
from rowcall.base.settings import Settings
from rowcall.definitions import Resting, Ticked, tick
from rowcall.job_types import Catalogue
from rowcall.queue.failures.count import count_failures
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link

# The thread waits by the machine's clock, not the database's: if it wakes early, it must not tick in a tight loop.
SHORTEST_PAUSE_SECONDS = 0.05

# After how many polls, but at most how many seconds, it checks again whether alerts or pings are due.
POLLS, LOOK_SECONDS = 10, 10.0


@dataclass
class Scheduler:
    """The thread that ticks."""

    link: Link
    worker: str
    catalogue: Catalogue
    bound: int
    poll: float
    watch: Watch
    pings: Pings
    _thread: threading.Thread | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _resting: Resting = field(default_factory=Resting)
    _logged: set[tuple[str, int]] = field(default_factory=set)

    @classmethod
    def of(cls, link: Link, worker: str, catalogue: Catalogue, settings: Settings) -> Scheduler:
        """A scheduler with these settings."""
        pause = min(POLLS * settings.poll, LOOK_SECONDS)
        watch, pings = Watch.of(settings, catalogue, pause), Pings.of(settings, pause)
        return cls(link, worker, catalogue, settings.tick_bound, settings.poll, watch, pings)

    @property
    def has_checks(self) -> bool:
        """Whether this process checks alerts or calls a dead man's switch."""
        return bool(self.watch.alerts) or self.pings.alive

    def start(self, guarded: Callable[[Callable[[], None]], Callable[[], None]]) -> None:
        """Start, as a daemon, because the next tick of any worker processes what this one leaves."""
        self._begin(guarded(self._run))

    def stop(self) -> None:
        """Stop ticking."""
        self._stopped.set()

    def join(self, seconds: float) -> None:
        """Wait for the tick in progress."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _begin(self, run: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=run, name="scheduler", daemon=True)
        self._thread.start()

    def start_once(
        self, guarded: Callable[[Callable[[], None]], Callable[[], None]], until: float, decided: Callable[[], None]
    ) -> None:
        """Tick in a thread until nothing is left to process or until this time, then call `decided`.

        This is a thread so that due runs need not wait until the schedules have caught up after a long outage.
        """

        def run() -> None:
            try:
                self._catch_up(until)
            finally:
                decided()

        self._begin(guarded(run))

    def _catch_up(self, until: float) -> None:
        more = True
        while more and not self._stopped.is_set():
            try:
                ticked = self._tick()
            except CONNECTION_ERRORS as error:
                # The worker that cron starts in the next minute will tick; this one can still try to perform due runs.
                self.link.lost(error)
                break
            self._log(ticked)
            more = any(ticked.decided.values()) and elapsed() < until
        self.link.close()

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            try:
                ticked = self._tick()
            except CONNECTION_ERRORS as error:
                pause = self.link.lost(error)
            else:
                self.link.works()
                self._log(ticked)
                pause = self._pause(ticked)
        self.link.close()

    def _tick(self) -> Ticked:
        connection = self.link.get()
        # Before the tick, which ends a silence.
        self.watch.check(connection)
        ticked = tick(connection, self.worker, self.catalogue, self.bound, self._resting)
        self.pings.check(connection)
        if ticked.recorded:
            count_failures(connection)
        return ticked

    def _pause(self, ticked: Ticked) -> float:
        """The pause until the next nominal time; the shortest pause if the bound left some times for the next tick."""
        if ticked.next_in is None or (ticked.next_in <= 0 and not any(ticked.decided.values())):
            return self.poll
        return min(self.poll, max(ticked.next_in, SHORTEST_PAUSE_SECONDS))

    def _log(self, ticked: Ticked) -> None:
        """Log what the tick decided; log a broken definition only once."""
        if ticked.slept_since is not None:
            log().warning(LogEvent.SCHEDULE_RESUMED, since=ticked.slept_since.isoformat())
        if any(ticked.decided.values()):
            log().info(
                LogEvent.SCHEDULE_TICKED, **{outcome.value: number for outcome, number in ticked.decided.items()}
            )
        for broken in ticked.broken:
            if (broken.name, broken.revision) not in self._logged:
                self._logged.add((broken.name, broken.revision))
                log().error(LogEvent.SCHEDULE_BROKEN, definition=broken.name, error=broken.error)
