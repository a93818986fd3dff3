"""The counter: adds up the ends of attempts and their times in memory, and writes them with the heartbeat."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rowcall import __version__
from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection
from rowcall.base.logs import LogEvent, log
from rowcall.queue.series.histogram import add_to, bucket_of
from rowcall.queue.series.record import End, MinuteCounts, begin_counting, write_counts
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.runtime.counts.totals import Totals, TypeTotals
from rowcall_worker.runtime.run_logs import LINES_REFUSED

# A minute and a job type.
Key = tuple[int, str]


class RunCounter:
    """What this process has counted; all threads share it.

    Minutes are those of the database's clock.  The current minute never goes back, so nothing is added to a minute
    whose counts have been written and forgotten.
    """

    def __init__(self) -> None:
        # The totals since the start, if this process serves metrics.
        self.totals: Totals | None = None
        # The types whose runs this process only hands over: their consumers count how long they waited and took.
        self.handed_over: Collection[str] = ()
        self._lock = threading.Lock()
        # Attempts that handler threads have begun: they are counted with the next ends, many under one lock.
        self._begun: deque[InFlightRun] = deque()
        # The database's time minus the process's clock; None until it is known, and nothing is counted until then.
        self._offset: float | None = None
        self._refused = False
        self._minute = 0
        self._counts: dict[Key, MinuteCounts] = {}
        self._unwritten: set[Key] = set()

    def begun(self, run: InFlightRun) -> None:
        """Note an attempt that begins, to be counted by how long its run had been due when it was claimed."""
        if run.claimed.job_type not in self.handed_over:
            self._begun.append(run)

    def _count_begun(self) -> None:
        waited: dict[str, list[float]] = defaultdict(list)
        while self._begun:
            claimed = self._begun.popleft().claimed
            waited[claimed.job_type].append(claimed.waited)
        for job_type, times in waited.items():
            buckets = [bucket_of(seconds) for seconds in times]
            if self.totals is not None:
                self.totals.of(job_type).waiting.add(buckets, times)
            if (counts := self._now(job_type)) is not None:
                add_to(counts.waiting, buckets)

    def ended(self, runs: Sequence[InFlightRun], end: End) -> None:
        """Count attempts whose ends are committed."""
        with self._lock:
            self._count_begun()
            ran: dict[str, list[float | None]] = defaultdict(list)
            for run in runs:
                job_type = run.claimed.job_type
                ran[job_type].append(None if job_type in self.handed_over else run.seconds)
            for job_type, all_times in ran.items():
                times = [seconds for seconds in all_times if seconds is not None]
                buckets = [bucket_of(seconds) for seconds in times]
                if self.totals is not None:
                    self.totals.of(job_type).ends[end] += len(all_times)
                    self.totals.of(job_type).running.add(buckets, times)
                if (counts := self._now(job_type)) is not None:
                    setattr(counts, end, getattr(counts, end) + len(all_times))
                    add_to(counts.running, buckets)

    def read_totals(self) -> Mapping[str, TypeTotals]:
        """Return what was counted since the start, by job type."""
        with self._lock:
            self._count_begun()
            return {} if self.totals is None else self.totals.copy()

    def _now(self, job_type: str) -> MinuteCounts | None:
        """Return the counts of this minute for this type, which will be written."""
        if self._offset is None:
            return None
        key = (self._pass(), job_type)
        self._unwritten.add(key)
        if key not in self._counts:
            self._counts[key] = MinuteCounts(*key)
        return self._counts[key]

    def _pass(self) -> int:
        self._minute = max(self._minute, int((elapsed() + (self._offset or 0)) // 60))
        return self._minute

    def write(self, connection: PgConnection, worker: str) -> None:
        """Write what has been counted since the last call; counting begins with the first call.

        If the database refuses this, perhaps because the grants are older than the table, this process stops counting.
        """
        if self._refused:
            return
        try:
            if self._offset is None:
                self._learn(begin_counting(connection, __version__))
            self._write(connection, worker)
        except LINES_REFUSED as refused:
            self._refused, self._offset = True, None
            log().warning(LogEvent.COUNTS_REFUSED, error=refused.diag.message_primary)

    def _write(self, connection: PgConnection, worker: str) -> None:
        with self._lock:
            self._count_begun()
            keys, self._unwritten = self._unwritten, set()
            sent = [_copy(self._counts[key]) for key in sorted(keys)]
        if not sent:
            return
        try:
            self._learn(write_counts(connection, worker, sent))
        except BaseException:
            with self._lock:
                self._unwritten |= keys
            raise
        with self._lock:
            minute = self._pass()
            for key in keys - self._unwritten:
                if key[0] < minute:
                    del self._counts[key]

    def _learn(self, now: float) -> None:
        self._offset = now - elapsed()


def _copy(counts: MinuteCounts) -> MinuteCounts:
    return replace(counts, waiting=list(counts.waiting), running=list(counts.running))
