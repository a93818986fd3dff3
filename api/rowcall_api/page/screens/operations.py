"""Operations: change all runs that match a filter, with a preview first, and watch the progress."""

from __future__ import annotations

from typing import Any

import flask
import marshmallow

from rowcall import effects, queue
from rowcall.base.database import Connection
from rowcall.base.errors import FilterInvalid
from rowcall.queue import operations
from rowcall.queue.operations import Action
from rowcall_api.http.auth import operator
from rowcall_api.http.database import transaction
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import at_once, part
from rowcall_api.page.screens.runs import FILTERS, asked, messages, read
from rowcall_api.rights import must_be_allowed_to_change_many, must_be_allowed_to_steer_operation

# Rescheduling needs a time, which the command line and the API take.
ACTIONS = {"retry": Action.RETRY, "cancel": Action.CANCEL, "run_now": Action.RUN_NOW}

EVENTS = {"stop": operations.stop, "continue": operations.continue_operation}


@blueprint.get("/operations", endpoint="operations")
@access.only_for("read")
def show_all() -> str:
    """Show the operations, the newest first."""
    page = part(operations.list_operations, 50, flask.request.args.get("cursor") or None)
    return flask.render_template("rowcall_page/operations.html", page=page)


@blueprint.get("/operations/<int:operation_id>")
@access.only_for("read")
def operation(operation_id: int) -> str:
    """Show one operation, with the runs that it refused to change."""
    return flask.render_template(
        "rowcall_page/operation.html",
        room="page.operations",
        row=at_once(operations.get_operation, operation_id),
        refusals=part(operations.refusals_page, operation_id),
    )


@blueprint.get("/operations/new/<any('retry', 'cancel', 'run_now'):action>")
@access.only_for("operate")
def preview(action: str) -> flask.typing.ResponseReturnValue:
    """Say what an operation on the runs of this filter would change; it changes nothing."""
    sent = {name: value for name, value in asked().items() if name in FILTERS}
    try:
        requested = _requested(action, sent)
    except (marshmallow.ValidationError, FilterInvalid) as error:
        return flask.redirect(flask.url_for("page.runs", **sent)) if sent else (_refused(error), 422)
    found = at_once(_preview, requested)
    return flask.render_template("rowcall_page/preview.html", room="page.runs", action=action, sent=sent, found=found)


@blueprint.post("/operations/new/<any('retry', 'cancel', 'run_now'):action>")
@access.only_for("operate")
def start(action: str) -> flask.typing.ResponseReturnValue:
    """Start an operation on the runs of this filter."""
    form = flask.request.form
    sent = {name: value for name, value in asked().items() if name in FILTERS}
    requested = _requested(
        action, sent, canary=form.get("canary") == "yes", reason=form.get("reason", "").strip() or None
    )
    with transaction() as connection:
        queue.limit_searches(connection, requested.criteria, flask.g.caller.key_id)
        started = operations.start(connection, requested, operator(), form.get("once") or None)
    return flask.redirect(flask.url_for("page.operation", operation_id=started.operation["id"], done="started"), 303)


@blueprint.post("/operations/<int:operation_id>/<any('stop', 'continue'):event>", endpoint="steer_operation")
@access.only_for("operate")
def steer(operation_id: int, event: str) -> flask.typing.ResponseReturnValue:
    """Stop or continue an operation."""
    with transaction() as connection:
        must_be_allowed_to_steer_operation(connection, operation_id)
        EVENTS[event](connection, operation_id, operator())
    return flask.redirect(flask.url_for("page.operation", operation_id=operation_id, done=event), 303)


def _requested(action: str, sent: dict[str, Any], **options: Any) -> operations.Requested:
    criteria = read(sent)[0]
    must_be_allowed_to_change_many({name: getattr(criteria, name) for name in sent})
    return operations.Requested(ACTIONS[action], criteria, **options)


def _preview(connection: Connection, requested: operations.Requested) -> operations.Preview:
    queue.limit_searches(connection, requested.criteria, flask.g.caller.key_id)
    unresolved = effects.unresolved_runs(connection) if requested.action is Action.RETRY else None
    return operations.preview(connection, requested, unresolved=unresolved)


def _refused(error: marshmallow.ValidationError | FilterInvalid) -> str:
    detail = "; ".join(f"{name}: {why}" for name, why in messages(error).items())
    return flask.render_template("rowcall_page/error.html", problem={"title": "invalid filter", "detail": detail})
