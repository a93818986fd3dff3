"""The first screen: whether all is well, and if not, why."""

from __future__ import annotations

from datetime import timedelta

import flask

from rowcall import definitions
from rowcall.base import settings
from rowcall.base.database import Connection
from rowcall.queue.failures.list import list_failures
from rowcall.queue.series.read import Series, read_series
from rowcall.queue.views.handed_over import list_handed_over
from rowcall.queue.views.workers import list_workers
from rowcall_api.page import charts, words
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.headline import findings, headline, late_run
from rowcall_api.page.reading import part
from rowcall_api.rights import may
from rowcall_api.standby.requests import standby_may_answer
from rowcall_api.stats import read_figures

# Range -> its length and the length of a step.
RANGES = {
    "1h": (timedelta(hours=1), "1m"),
    "6h": (timedelta(hours=6), "5m"),
    "1d": (timedelta(days=1), "5m"),
    "7d": (timedelta(days=7), "1h"),
}

SHOWN_MOST = 8


@blueprint.get("")
@standby_may_answer
def overview() -> str:
    """Show the overview; without the scope `read`, what else the operator can do."""
    if not may("read"):
        return flask.render_template("rowcall_page/without_read.html")
    chosen = flask.request.args.get("range", "1h")
    if chosen not in RANGES:
        chosen = "1h"
    stats = part(read_figures)
    late = part(late_run, stats.value["queues"] if stats.value else [])
    found = findings(stats.value, late.value) if stats.value else []
    series = part(_series, chosen)
    heartbeat = settings.read().heartbeat
    return flask.render_template(
        "rowcall_page/overview.html",
        stats=stats,
        late=late,
        findings=found,
        headline=headline(stats.value, found) if stats.value else None,
        oldest=max((queue["oldest_due_age_seconds"] for queue in stats.value["queues"]), default=0)
        if stats.value
        else 0,
        failures=part(list_failures, limit=SHOWN_MOST),
        series=series,
        charts=_charts(series.value) if series.value else [],
        workers=part(list_workers, limit=SHOWN_MOST, heartbeat=heartbeat),
        handed_over=part(list_handed_over, heartbeat=heartbeat),
        schedules=part(definitions.next_due, SHOWN_MOST),
        range=chosen,
        ranges=list(RANGES),
    )


def _series(connection: Connection, chosen: str) -> Series:
    length, step = RANGES[chosen]
    until = words.now()
    return read_series(connection, until - length, until, step)


def _charts(series: Series) -> list[tuple[str, charts.Chart]]:
    return [
        ("Finished attempts", charts.throughput(series)),
        ("Waiting time", charts.times(series, "waiting", "How long runs waited")),
        ("Run time", charts.times(series, "running", "How long handlers ran")),
    ]
