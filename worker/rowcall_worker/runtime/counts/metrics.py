"""The metrics of a worker process, in Prometheus' format, from its memory alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rowcall import __version__
from rowcall.base.clock import elapsed
from rowcall.queue.series.histogram import BOUNDS
from rowcall.queue.series.record import End
from rowcall_worker.runtime.connection import Outage
from rowcall_worker.runtime.counts.totals import Histogram
from rowcall_worker.runtime.in_flight import InFlight

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Described(NamedTuple):
    """A metric's name, labels and meaning, also for the reference."""

    name: str
    labels: tuple[str, ...]
    meaning: str


INFO = Described("rowcall_worker_info", ("worker", "version"), "Always 1; the labels say which worker this is.")
ATTEMPTS = Described(
    "rowcall_worker_attempts_total",
    ("job_type", "end"),
    "Attempts that ended since this process started: `succeeded`; `failed` (to be retried); `dead`; `cancelled`;"
    " `snoozed`; `released` (by a stopping worker).",
)
WAITING = Described(
    "rowcall_worker_waiting_seconds",
    ("job_type",),
    "Histogram: how long runs had been due when their attempt began.",
)
RUNNING = Described("rowcall_worker_running_seconds", ("job_type",), "Histogram: how long handlers ran.")
IN_FLIGHT = Described(
    "rowcall_worker_runs_in_flight",
    (),
    "Runs that this process holds: waiting for a thread, running, or ended but not yet recorded.",
)
SLOTS = Described("rowcall_worker_slots", (), "Maximum number of runs that this process performs at a time.")
DATABASE_UP = Described("rowcall_worker_database_up", (), "0 if this worker cannot reach the database; otherwise 1.")
AGE = Described(
    "rowcall_worker_last_success_age_seconds",
    ("part",),
    "Seconds since a statement of this part of the worker last succeeded: `producer` claims and finishes, `heartbeat`"
    " renews leases, `scheduler` ticks. Alert above 150.",
)

ALL = (INFO, ATTEMPTS, WAITING, RUNNING, IN_FLIGHT, SLOTS, DATABASE_UP, AGE)

PARTS = ("producer", "heartbeat", "scheduler")


class WorkerFigures(Collector):
    """Converts what a worker has counted into metrics."""

    def __init__(self, worker: str, in_flight: InFlight, outage: Outage) -> None:
        self._worker = worker
        self._in_flight = in_flight
        self._outage = outage
        self._started_at = elapsed()

    def rendered(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics (the Prometheus client's hook)."""
        yield _gauge(INFO, [((self._worker, __version__), 1)])
        yield from self._of_types()
        yield _gauge(IN_FLIGHT, [((), len(self._in_flight.runs))])
        yield _gauge(SLOTS, [((), self._in_flight.threads)])
        yield _gauge(DATABASE_UP, [((), not self._outage.lasts)])
        now = elapsed()
        # A part that has not succeeded yet counts from the start of the worker.
        ages = [((part,), now - self._outage.worked_at.get(part, self._started_at)) for part in PARTS]
        yield _gauge(AGE, ages)

    def _of_types(self) -> Iterator[Metric]:
        types = self._in_flight.counter.read_totals()
        attempts = CounterMetricFamily(ATTEMPTS.name, ATTEMPTS.meaning, labels=ATTEMPTS.labels)
        waiting = HistogramMetricFamily(WAITING.name, WAITING.meaning, labels=WAITING.labels)
        running = HistogramMetricFamily(RUNNING.name, RUNNING.meaning, labels=RUNNING.labels)
        for name, totals in types.items():
            for end in End:
                attempts.add_metric([name, end], totals.ends[end])
            _add(waiting, name, totals.waiting)
            _add(running, name, totals.running)
        yield from (attempts, waiting, running)


def _gauge(metric: Described, values: Iterable[tuple[tuple[str, ...], float]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for label, value in values:
        family.add_metric(label, value)
    return family


def _add(family: HistogramMetricFamily, name: str, histogram: Histogram) -> None:
    """Add one type's histogram; Prometheus' buckets are cumulative."""
    bounds = [*map(str, BOUNDS), "+Inf"]
    family.add_metric(
        [name], list(zip(bounds, accumulate(histogram.buckets), strict=True)), sum_value=histogram.seconds
    )
