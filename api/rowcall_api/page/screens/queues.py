"""Queues: what waits in each, what holds it up, and the buttons that pause, resume and limit it."""

from __future__ import annotations

from typing import Any

import flask
from werkzeug.exceptions import BadRequest

from rowcall import queue
from rowcall.base.database import Connection, Row
from rowcall.job_types import catalogue
from rowcall.queue.views.stats import counted_queue, queues_page
from rowcall_api.http.auth import operator
from rowcall_api.http.database import transaction
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.headline import waiting_in
from rowcall_api.page.reading import at_once, part
from rowcall_api.rights import must_be_allowed_to_change_queue

# The largest integer of PostgreSQL.
LARGEST = 2**31 - 1

EVENTS = {"pause": queue.pause_queue, "resume": queue.resume_queue}


@blueprint.get("/queues")
@access.only_for("read")
def queues() -> str:
    """Show the queues by name."""
    return flask.render_template("rowcall_page/queues.html", page=part(_page, flask.request.args.get("cursor") or None))


@blueprint.get("/queues/<name>", endpoint="queue")
@access.only_for("read")
def show_one(name: str) -> str:
    """Show one queue, and what holds it up."""
    row = at_once(_counted, name)
    return flask.render_template(
        "rowcall_page/queue.html", room="page.queues", row=row, late=part(waiting_in, name) if row["due"] else None
    )


@blueprint.post("/queues/<name>/<any('pause', 'resume'):event>", endpoint="switch_queue")
@access.only_for("operate")
def switch(name: str, event: str) -> flask.typing.ResponseReturnValue:
    """Pause or resume a queue."""
    must_be_allowed_to_change_queue(name)
    with transaction() as connection:
        EVENTS[event](connection, name, operator())
    return flask.redirect(flask.url_for("page.queue", name=name, done=event), 303)


@blueprint.post("/queues/<name>/limit")
@access.only_for("operate")
def limit(name: str) -> flask.typing.ResponseReturnValue:
    """Limit how many runs of a queue run at a time; an empty field removes the limit."""
    text = flask.request.form.get("max_running", "").strip()
    if text and not (text.isascii() and text.isdigit() and int(text) <= LARGEST):
        raise BadRequest("the limit must be a whole number from 0 to 2147483647, or empty for none")
    must_be_allowed_to_change_queue(name)
    with transaction() as connection:
        queue.limit_queue(connection, name, int(text) if text else None, operator())
    return flask.redirect(flask.url_for("page.queue", name=name, done="limit"), 303)


def _page(connection: Connection, cursor: str | None) -> dict[str, Any]:
    types = catalogue()
    rows, following = queues_page(connection, types.queues, types.limits, cursor)
    return {"rows": rows, "next": following}


def _counted(connection: Connection, name: str) -> Row:
    types = catalogue()
    return counted_queue(connection, name, types.queues, types.limits)
