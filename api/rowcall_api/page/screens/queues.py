"""Queues: what waits in each, what holds it up, and the buttons that pause, resume and limit it."""

from __future__ import annotations

from typing import Any

import flask

from rowcall import queue
from rowcall.base.database import Connection, Row
from rowcall.job_types import catalogue
from rowcall.queue.views.stats import counted_queue, queues_page
from rowcall_api.http.auth import operator
from rowcall_api.http.database import transaction
from rowcall_api.page import access, forms
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.headline import waiting_in
from rowcall_api.page.reading import at_once, part
from rowcall_api.rights import may_change_queue, must_be_allowed_to_change_queue
from rowcall_api.schemas.queues import QueueLimitSchema
from rowcall_api.standby.requests import standby_may_answer

EVENTS = {"pause": queue.pause_queue, "resume": queue.resume_queue}


@blueprint.get("/queues")
@standby_may_answer
@access.only_for("read")
def queues() -> str:
    """Show the queues by name."""
    return flask.render_template("rowcall_page/queues.html", page=part(_page, flask.request.args.get("cursor") or None))


@blueprint.get("/queues/<name>", endpoint="queue")
@access.only_for("read")
def show_one(name: str) -> str:
    """Show one queue, and what holds it up."""
    return _screen(name, {})


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
    must_be_allowed_to_change_queue(name)
    typed = forms.text("max_running")
    number = int(typed) if typed and typed.isascii() and typed.isdigit() and len(typed) <= 10 else typed
    values, wrong = forms.loaded(QueueLimitSchema(), {"max_running": number})
    if wrong:
        return _screen(name, wrong), 422
    with transaction() as connection:
        queue.limit_queue(connection, name, values["max_running"], operator())
    return flask.redirect(flask.url_for("page.queue", name=name, done="limit"), 303)


@blueprint.post("/queues/<name>/remove", endpoint="remove_queue")
@access.only_for("operate")
def remove(name: str) -> flask.typing.ResponseReturnValue:
    """Remove what operators have set; a queue without runs and without a job type is then gone."""
    must_be_allowed_to_change_queue(name)
    with transaction() as connection:
        queue.remove_queue(connection, name, operator())
    return flask.redirect(flask.url_for("page.queues", done="remove-settings"), 303)


def _screen(name: str, wrong: dict[str, str]) -> str:
    row = at_once(_counted, name)
    declared = name in catalogue().queues
    is_set = row["paused_at"] is not None or row["operator_limit"] is not None
    return flask.render_template(
        "rowcall_page/queue.html",
        room="page.queues",
        row=row,
        declared=declared,
        may_switch=access.may_change() and may_change_queue(name),
        removable=is_set or (row["made"] and not declared),
        late=part(waiting_in, name) if row["due"] else None,
        wrong=wrong,
        sent=flask.request.form,
    )


def _page(connection: Connection, cursor: str | None) -> dict[str, Any]:
    types = catalogue()
    rows, following = queues_page(connection, types.queues, types.limits, cursor)
    return {"rows": rows, "next": following}


def _counted(connection: Connection, name: str) -> Row:
    types = catalogue()
    return counted_queue(connection, name, types.queues, types.limits)
