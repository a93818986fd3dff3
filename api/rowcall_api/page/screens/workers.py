"""Workers: which there are, and what each does now."""

from __future__ import annotations

import flask

from rowcall.base import settings
from rowcall.queue.views.workers import list_workers
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import part


@blueprint.get("/workers", endpoint="workers")
@access.only_for("read")
def show_all() -> str:
    """Show the workers, the newest first; those that have stopped only on request."""
    stopped = flask.request.args.get("stopped") == "yes"
    cursor = flask.request.args.get("cursor") or None
    heartbeat = settings.read().heartbeat
    page = part(list_workers, 50, cursor, heartbeat=heartbeat, stopped=stopped)
    return flask.render_template("rowcall_page/workers.html", page=page, stopped=stopped)
