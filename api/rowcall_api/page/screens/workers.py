"""Workers: which there are, what each is doing, what it serves, and which due runs no worker serves.

Below them, what was handed over: the messages that wait, and the consumers that perform runs.
"""

from __future__ import annotations

from datetime import timedelta

import flask

from rowcall.base import settings
from rowcall.base.database import Connection, Row
from rowcall.base.durations import duration_words
from rowcall.queue.views.handed_over import list_handed_over
from rowcall.queue.views.workers import WorkersPage, list_workers
from rowcall.queue.workers import silence, unserved
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import part
from rowcall_api.standby.requests import standby_may_answer


@blueprint.get("/workers", endpoint="workers")
@standby_may_answer
@access.only_for("read")
def show_all() -> str:
    """Show the workers, the newest first; those that have stopped are shown only on request."""
    stopped = flask.request.args.get("stopped") == "yes"
    heartbeat = settings.read().heartbeat
    return flask.render_template(
        "rowcall_page/workers.html",
        page=part(_page, flask.request.args.get("cursor") or None, heartbeat, stopped),
        stopped=stopped,
        gone=duration_words(timedelta(seconds=silence(heartbeat))),
        unserved=part(unserved, silence(heartbeat)),
        handed_over=part(list_handed_over, heartbeat=heartbeat),
    )


def _page(connection: Connection, cursor: str | None, heartbeat: float, stopped: bool) -> WorkersPage:
    """Return the workers, each with its state in one word."""
    page = list_workers(connection, 50, cursor, heartbeat=heartbeat, stopped=stopped)
    return WorkersPage([{**worker, "state": _state(worker)} for worker in page.workers], page.next)


def _state(worker: Row) -> str:
    if worker["stopped_at"]:
        return "stopped"
    if not worker["alive"]:
        return "silent"
    return "busy" if worker["running"] else "idle"
