"""/metrics: the figures of /v1/stats in the Prometheus format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import flask
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from rowcall.base import settings
from rowcall.base.database import Row
from rowcall.base.errors import DatabaseUnreachable
from rowcall.queue.views.stats import EXAMINED_MOST
from rowcall_api.http import auth, request_log
from rowcall_api.standby.requests import STANDBY, standby_may_answer
from rowcall_api.standby.standby import Standby
from rowcall_api.stats import figures_now

blueprint = flask.Blueprint("metrics", __name__)


# Each queue has a handful of series, and a scrape of many thousands would fail.
QUEUES_MOST = 200


class Gauge(NamedTuple):
    """One figure: its name, its meaning with advice for alerts, and how to read it. Counts stop at 1000."""

    name: str
    meaning: str
    read: Callable[[Row], float]


OF_A_QUEUE = (
    Gauge(
        "rowcall_runs_due",
        "Runs that are due and not running, at most 1000. Alert on rowcall_oldest_due_age_seconds instead: a long queue"
        " that moves is fine.",
        lambda queue: queue["due"],
    ),
    Gauge(
        "rowcall_oldest_due_age_seconds",
        "How long the oldest run that is due and that nobody performs has been due. Alert when it stays above the"
        " acceptable delay of this queue, unless rowcall_queue_paused is 1.",
        lambda queue: queue["oldest_due_age_seconds"],
    ),
    Gauge(
        "rowcall_runs_queued",
        "Runs that are waiting to start, due now or later, at most 1000.",
        lambda queue: queue["queued"],
    ),
    Gauge("rowcall_runs_running", "Runs with the status running, at most 1000.", lambda queue: queue["running"]),
    Gauge(
        "rowcall_runs_handed_over",
        "Running runs that were handed over and that no consumer has begun, at most 1000.",
        lambda queue: queue["handed_over"],
    ),
    Gauge(
        "rowcall_runs_failed",
        "Runs whose last attempt failed and that will be retried, at most 1000. Alert when it keeps growing.",
        lambda queue: queue["failed"],
    ),
    Gauge(
        "rowcall_queue_paused",
        "1 if the queue is paused. Alert if it stays 1 for longer than you pause queues on purpose.",
        lambda queue: queue["paused_at"] is not None,
    ),
)

QUEUES_UNLISTED = (
    f"How many queues are left out. At most {QUEUES_MOST} are shown: first the queues that job types declare or"
    " operators created, then those whose oldest due run has waited longest. Alert above 0: something creates"
    " queue names."
)

EFFECTS_UNKNOWN = (
    "Effects with an unknown outcome, at most 1000. Alert above 0: an operator must resolve them;"
    " `rowcall effects list --state unknown` lists them. Effects of dead and cancelled runs that are still in"
    " the state `intent` are not counted; `rowcall doctor` names those."
)

OF_THE_WHOLE = (
    Gauge(
        "rowcall_attempts_failed_last_hour",
        "Attempts that failed within the last hour, at most 1000. Alert if there are more than usual.",
        lambda figures: figures["attempts_failed_last_hour"],
    ),
    Gauge(
        "rowcall_runs_dead_last_day",
        "Runs that became dead within the last day and still are, at most 1000; only the day's latest"
        f" {EXAMINED_MOST:,} failed attempts are examined. Alert above 0: each is waiting for an operator, and `rowcall"
        " runs list --status dead` shows them.",
        lambda figures: figures["runs_dead_last_day"],
    ),
    Gauge(
        "rowcall_workers_alive",
        "Workers that have not stopped, and have not missed two heartbeats. Alert on 0; if cron starts the workers,"
        " alert on rowcall_schedule_tick_age_seconds instead.",
        lambda figures: figures["workers_alive"],
    ),
    Gauge(
        "rowcall_definitions_paused",
        "Paused definitions, at most 1000.",
        lambda figures: figures["definitions"]["paused"],
    ),
    Gauge(
        "rowcall_definitions_overdue",
        "Definitions with a nominal time that became due more than 150 seconds ago and is not processed yet, at most"
        " 1000. Alert above 0: no worker ticks, none knows the job type, or the schedule is broken, as the log says.",
        lambda figures: figures["definitions"]["overdue"],
    ),
    Gauge(
        "rowcall_schedule_tick_age_seconds",
        "Seconds since the last successful tick. Alert above 150: no worker is running, and cron starts none.",
        lambda figures: figures["tick"]["age_seconds"],
    ),
)

STANDBY_UP = (
    "1 if the standby of ROWCALL_READ_URL answers reads; 0 if the leader answers them instead. Only served if"
    " ROWCALL_READ_URL is set. Alert on 0."
)

STANDBY_AGE = "How old the standby's answers are, at most. Only served while rowcall_standby_up is 1."

DATABASE_UP = "1 if the database answered this scrape; otherwise 0, and no other metric is served. Alert on 0."


class Figures(Collector):
    """Converts the figures to gauges; they are None if the database did not answer."""

    def __init__(self, figures: Row | None, standby: Standby | None = None) -> None:
        self._figures = figures
        self._standby = standby

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the gauges (the Prometheus client's hook)."""
        yield GaugeMetricFamily("rowcall_database_up", DATABASE_UP, value=self._figures is not None)
        yield from self._of_standby()
        if self._figures is None:
            return
        queues = sorted(self._figures["queues"], key=_made_first)[:QUEUES_MOST]
        unlisted = len(self._figures["queues"]) - len(queues)
        yield GaugeMetricFamily("rowcall_queues_unlisted", QUEUES_UNLISTED, value=unlisted)
        for gauge in OF_A_QUEUE:
            values = {queue["name"]: gauge.read(queue) for queue in queues}
            yield _labelled(gauge.name, gauge.meaning, "queue", values)
        yield _labelled("rowcall_effects_unknown", EFFECTS_UNKNOWN, "kind", self._figures["effects_unknown"])
        for gauge in OF_THE_WHOLE:
            yield GaugeMetricFamily(gauge.name, gauge.meaning, value=gauge.read(self._figures))

    def _of_standby(self) -> Iterable[GaugeMetricFamily]:
        if self._standby is None:
            return
        up, age = self._standby.away is None, self._standby.age
        yield GaugeMetricFamily("rowcall_standby_up", STANDBY_UP, value=up)
        if up:
            yield GaugeMetricFamily("rowcall_standby_age_seconds", STANDBY_AGE, value=age)


def _made_first(queue: Row) -> tuple[bool, float]:
    """Return the sort key that puts queues of job types and operators first, so that others cannot displace them."""
    return not queue["made"], -queue["oldest_due_age_seconds"]


def _labelled(name: str, meaning: str, label: str, values: dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for labelled, value in values.items():
        family.add_metric([labelled], value)
    return family


@blueprint.get("/metrics")
def show_metrics() -> flask.Response:
    """Serve the metrics to callers with the scope `read`, or to everyone if ROWCALL_METRICS_PUBLIC is on.

    If the database is unreachable, keys cannot be checked, and rowcall_database_up is the only metric.
    """
    try:
        figures = _figures()
    except DatabaseUnreachable as error:
        request_log.note(error=str(error))
        figures = None
    standby = flask.current_app.extensions.get(STANDBY)
    written, content_type = choose_encoder(flask.request.headers.get("Accept", ""))
    return flask.Response(written(Figures(figures, standby)), content_type=content_type)


@auth.needs("read")
def _figures() -> Row:
    """Check the key and read the figures.  The guard skips this route, which must answer without the database too."""
    if not settings.read().metrics_public:
        auth.authorize(auth.authenticate(), _figures)
    return standby_may_answer(figures_now)()
