"""Failures: by job type and error, how often in the last hour, day and week."""

from __future__ import annotations

import flask

from rowcall.queue.failures.list import list_failures
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import part

SHOWN_MOST = 100


@blueprint.get("/failures")
@access.only_for("read")
def failures() -> str:
    """Show the errors of the last week."""
    args = flask.request.args
    job_type, queue = args.get("job_type") or None, args.get("queue") or None
    found = part(list_failures, job_type, queue, SHOWN_MOST)
    return flask.render_template("rowcall_page/failures.html", failures=found, filtered=bool(job_type or queue))
