"""Failures: by job type and error, how often in the last hour, day and week; and the attempts behind each number."""

from __future__ import annotations

import flask

from rowcall.queue.failures.behind import attempts_behind
from rowcall.queue.failures.list import list_failures
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import part
from rowcall_api.standby.requests import standby_may_answer

SHOWN_MOST = 100

# The periods of the table's columns, in hours; an address with any other period shows the week.
PERIODS = {1: "hour", 24: "24 hours", 168: "7 days"}


@blueprint.get("/failures")
@standby_may_answer
@access.only_for("read")
def failures() -> str:
    """Show the errors of the last week."""
    args = flask.request.args
    job_type, queue = args.get("job_type") or None, args.get("queue") or None
    found = part(list_failures, job_type, queue, SHOWN_MOST)
    return flask.render_template(
        "rowcall_page/failures.html", failures=found, filtered={"job_type": job_type, "queue": queue}
    )


@blueprint.get("/failures/attempts")
@standby_may_answer
@access.only_for("read")
def failed_attempts() -> str:
    """Show failed attempts: those of one job type and error, or all."""
    args = flask.request.args
    asked = {name: args.get(name, "").strip() or None for name in ("job_type", "error_type", "error_key")}
    hours = args.get("hours", "")
    period = int(hours) if hours in map(str, PERIODS) else max(PERIODS)
    found = part(attempts_behind, period, limit=SHOWN_MOST, **asked)
    return flask.render_template(
        "rowcall_page/failed_attempts.html",
        room="page.failures",
        asked=asked,
        hours=period,
        periods=PERIODS,
        found=found,
        most=SHOWN_MOST,
    )
