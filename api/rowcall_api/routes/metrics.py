"""/metrics: the figures of /v1/stats as Prometheus reads them."""

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
from rowcall_api.http import auth
from rowcall_api.stats import figures_now

blueprint = flask.Blueprint("metrics", __name__)


class Gauge(NamedTuple):
    """One figure: its name, what it means and when to alert, and where it is read.  Counts stop at 1000."""

    name: str
    meaning: str
    read: Callable[[Row], float]


OF_A_QUEUE = (
    Gauge(
        "rowcall_runs_due",
        "Runs that could be claimed now, 1000 at the most. Rather alert on rowcall_oldest_due_age_seconds: a long queue"
        " that moves is well.",
        lambda queue: queue["due"],
    ),
    Gauge(
        "rowcall_oldest_due_age_seconds",
        "For how long the longest due run is due. Alert when it stays above what this queue's runs may wait, unless"
        " rowcall_queue_paused is 1.",
        lambda queue: queue["oldest_due_age_seconds"],
    ),
    Gauge(
        "rowcall_runs_queued",
        "Runs that wait for an attempt, due or for later, 1000 at the most.",
        lambda queue: queue["queued"],
    ),
    Gauge("rowcall_runs_running", "Runs that a worker has, 1000 at the most.", lambda queue: queue["running"]),
    Gauge(
        "rowcall_runs_failed",
        "Runs whose last attempt failed and that will be tried again, 1000 at the most. Alert when it keeps growing.",
        lambda queue: queue["failed"],
    ),
    Gauge(
        "rowcall_queue_paused",
        "1 where nothing is claimed from this queue. Alert when it stays 1 by mistake.",
        lambda queue: queue["paused_at"] is not None,
    ),
)

EFFECTS_UNKNOWN = (
    "Effects of which nobody knows whether they happened, 1000 at the most. Alert above 0: an operator has to look, and"
    " `rowcall effects list --state unknown` shows them."
)

OF_THE_WHOLE = (
    Gauge(
        "rowcall_attempts_failed_last_hour",
        "Attempts that failed within the last hour, 1000 at the most. Alert above what is usual.",
        lambda told: told["attempts_failed_last_hour"],
    ),
    Gauge(
        "rowcall_workers_alive",
        "Workers that were heard of lately and have not stopped. Alert on 0; where cron wakes them, on"
        " rowcall_schedule_tick_age_seconds instead.",
        lambda told: told["workers_alive"],
    ),
    Gauge(
        "rowcall_definitions_paused",
        "Definitions for which nothing is enqueued, 1000 at the most.",
        lambda told: told["definitions"]["paused"],
    ),
    Gauge(
        "rowcall_definitions_overdue",
        "Definitions whose time has come and that no tick decides, 1000 at the most. Alert above 0: no worker knows the"
        " type, or the log says why the schedule is broken.",
        lambda told: told["definitions"]["overdue"],
    ),
    Gauge(
        "rowcall_schedule_tick_age_seconds",
        "Time since a tick of the schedules last went well. Alert above 150: no worker is awake, and cron wakes none.",
        lambda told: told["tick"]["age_seconds"],
    ),
)

DATABASE_UP = "1 where the database answered this scrape, else 0, and then there are no other figures. Alert on 0."


class Figures(Collector):
    """The figures as they were read; None where the database was not there to be asked."""

    def __init__(self, told: Row | None) -> None:
        self._told = told

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Prometheus' hook: each gauge, with its meaning."""
        yield GaugeMetricFamily("rowcall_database_up", DATABASE_UP, value=self._told is not None)
        if self._told is None:
            return
        for gauge in OF_A_QUEUE:
            values = {queue["name"]: gauge.read(queue) for queue in self._told["queues"]}
            yield _labelled(gauge.name, gauge.meaning, "queue", values)
        yield _labelled("rowcall_effects_unknown", EFFECTS_UNKNOWN, "kind", self._told["effects_unknown"])
        for gauge in OF_THE_WHOLE:
            yield GaugeMetricFamily(gauge.name, gauge.meaning, value=gauge.read(self._told))


def _labelled(name: str, meaning: str, label: str, values: dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for labelled, value in values.items():
        family.add_metric([labelled], value)
    return family


@blueprint.get("/metrics")
def show_metrics() -> flask.Response:
    """For who has a key with the scope read; for anybody where ROWCALL_METRICS_PUBLIC is on.

    A database that is gone is a figure too: then no key can be looked up, and that it is gone is all that is told.
    """
    try:
        told = _figures()
    except DatabaseUnreachable:
        told = None
    written, content_type = choose_encoder(flask.request.headers.get("Accept", ""))
    return flask.Response(written(Figures(told)), content_type=content_type)


@auth.needs("read")
def _figures() -> Row:
    """The door does not ask for the key of this route: it would let nobody in when the database is gone."""
    if not settings.read().metrics_public:
        auth.authorize(auth.authenticate(), _figures)
    return figures_now()
