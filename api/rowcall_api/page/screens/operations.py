"""Operations: change all runs that match a filter, with a preview first, and watch the progress."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

import flask

from rowcall import effects, queue
from rowcall.base import settings
from rowcall.base.database import Connection, Row
from rowcall.base.errors import FilterInvalid
from rowcall.job_types import catalogue
from rowcall.queue import operations
from rowcall.queue.operations import Action
from rowcall.queue.operations.state import allowed_in
from rowcall_api.http.auth import operator
from rowcall_api.http.database import transaction
from rowcall_api.page import access, forms
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.filters import Asked, asked
from rowcall_api.page.reading import at_once, part, seconds_left
from rowcall_api.page.screens.runs import ACTIONS
from rowcall_api.rights import may_change_many, must_be_allowed_to_change_many, must_be_allowed_to_steer_operation
from rowcall_api.standby.requests import standby_may_answer

# Counting stops here, so that a preview of a million runs is fast too; the operation changes them all.
COUNTED_MOST = 10_000

# The filters to which a key can be limited.
LIMITED = ("job_type", "queue")

EVENTS = {"stop": operations.stop, "continue": operations.continue_operation}


@blueprint.get("/operations", endpoint="operations")
@standby_may_answer
@access.only_for("read")
def show_all() -> str:
    """Show the operations, the newest first."""
    page = part(operations.list_operations, 50, flask.request.args.get("cursor") or None)
    return flask.render_template("rowcall_page/operations.html", page=page)


@blueprint.get("/operations/<int:operation_id>")
@access.only_for("read")
def operation(operation_id: int) -> str:
    """Show one operation, with the runs that it refused to change."""
    row = at_once(operations.get_operation, operation_id)
    again = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in row["filter"].items()}
    return flask.render_template(
        "rowcall_page/operation.html",
        room="page.operations",
        row=row,
        again=again,
        waits=part(_waits, row),
        events=allowed_in(operations.OperationStatus(row["status"])),
        may_steer=access.may_change() and may_change_many({name: row["filter"].get(name) for name in LIMITED}),
        refusals=part(operations.refusals_page, operation_id, cursor=flask.request.args.get("cursor") or None),
    )


@blueprint.get("/operations/new/<any('retry', 'cancel', 'run_now'):action>")
@access.only_for("operate")
def preview(action: str) -> str:
    """Say what an operation on the runs of this filter would change, without changing anything."""
    request = _narrow()
    return _previewed(action, request, _requested(action, request))


@blueprint.post("/operations/new/<any('retry', 'cancel', 'run_now'):action>")
@access.only_for("operate")
def start(action: str) -> flask.typing.ResponseReturnValue:
    """Start an operation on the runs of this filter."""
    form, request = flask.request.form, _narrow()
    by, wrong = forms.with_reason()
    if wrong:
        return _previewed(action, request, _requested(action, request), wrong), 422
    requested = _requested(action, request, canary=form.get("canary") == "yes", reason=by.reason)
    with transaction() as connection:
        queue.limit_searches(connection, requested.criteria, flask.g.caller.key_id)
        started = operations.start(connection, requested, by, form.get("once") or None)
    return flask.redirect(flask.url_for("page.operation", operation_id=started.operation["id"], done="started"), 303)


@blueprint.post("/operations/<int:operation_id>/<any('stop', 'continue'):event>", endpoint="steer_operation")
@access.only_for("operate")
def steer(operation_id: int, event: str) -> flask.typing.ResponseReturnValue:
    """Stop or continue an operation."""
    with transaction() as connection:
        must_be_allowed_to_steer_operation(connection, operation_id)
        EVENTS[event](connection, operation_id, operator())
    return flask.redirect(flask.url_for("page.operation", operation_id=operation_id, done=event), 303)


def _waits(connection: Connection, row: Row) -> str | None:
    """Return what an operation waits for; None if it has finished."""
    waiting = operations.why_it_waits(connection, row, catalogue().limits, settings.read().heartbeat)
    return waiting and waiting.message


def _narrow() -> Asked:
    """Return the filter of the address; an operation needs a valid filter that does not match every run."""
    request = asked()
    if request.wrong:
        raise FilterInvalid(request.wrong)
    if not request.fixed:
        raise FilterInvalid({"filter": "matches every run: filter the list of runs, and choose the action there"})
    return request


def _requested(action: str, request: Asked, **options: Any) -> operations.Requested:
    must_be_allowed_to_change_many({name: getattr(request.criteria, name) for name in request.fixed})
    return operations.Requested(ACTIONS[action], request.criteria, **options)


def _previewed(
    action: str, request: Asked, requested: operations.Requested, wrong: Mapping[str, str] | None = None
) -> str:
    return flask.render_template(
        "rowcall_page/preview.html",
        room="page.operations",
        action=action,
        sent=request.fixed,
        found=at_once(_preview, requested),
        once=flask.request.form.get("once") or secrets.token_urlsafe(12),
        wrong=wrong or {},
    )


def _preview(connection: Connection, requested: operations.Requested) -> operations.Preview:
    queue.limit_searches(connection, requested.criteria, flask.g.caller.key_id)
    unresolved = effects.unresolved_runs(connection) if requested.action is Action.RETRY else None
    return operations.preview(connection, requested, COUNTED_MOST, unresolved, seconds=seconds_left())
