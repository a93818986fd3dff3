"""The buttons of one run: each form calls the function that the API's route calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container
from typing import Any

import flask
from werkzeug.exceptions import BadRequest

from rowcall import queue
from rowcall.access.audit import Operator, wrong_with_reason
from rowcall.base.database import Row
from rowcall.base.errors import RunInvalid
from rowcall_api.http.auth import operator
from rowcall_api.http.body import parsed, usable
from rowcall_api.http.database import transaction
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.rights import must_be_allowed_to_enqueue, must_be_allowed_to_steer

EVENTS: dict[str, Callable[..., Row]] = {
    "retry": queue.retry,
    "cancel": queue.cancel_any,
    "force-cancel": functools.partial(queue.cancel_any, force=True),
    "run-now": queue.run_now,
}


@blueprint.post("/runs/<int:run_id>/<any({}):event>".format(", ".join(f"'{name}'" for name in EVENTS)))
@access.only_for("operate")
def steer(run_id: int, event: str) -> flask.typing.ResponseReturnValue:
    """Change a run, unless it has changed since the screen was shown."""
    with transaction() as connection:
        must_be_allowed_to_steer(connection, run_id)
        EVENTS[event](connection, run_id, reasoned(), _expected())
    return shown(run_id, event.removeprefix("force-"))


@blueprint.post("/runs/<int:run_id>/clone")
@access.only_for("operate")
def clone(run_id: int) -> flask.typing.ResponseReturnValue:
    """Enqueue a copy of a run, with another payload if the form has one."""
    changes: dict[str, Any] = {}
    if text := flask.request.form.get("payload", "").strip():
        changes["payload"] = _payload(text)
    with transaction() as connection:
        must_be_allowed_to_steer(connection, run_id)
        original = queue.get_run(connection, run_id)
        must_be_allowed_to_enqueue(connection, original["job_type"], original["queue"])
        outcome = queue.clone(connection, run_id, reasoned(), _expected(), **changes)
    return shown(outcome.run_id, "clone")


def reasoned() -> Operator:
    """Return the operator, with the reason that the form has."""
    reason = flask.request.form.get("reason", "").strip() or None
    if wrong := wrong_with_reason(reason):
        raise RunInvalid({"reason": wrong})
    found = operator()
    return Operator(found.who, found.request_id, found.key_owner, reason)


def shown(run_id: int, done: str) -> flask.typing.ResponseReturnValue:
    """Lead back to the run."""
    return flask.redirect(flask.url_for("page.run", run_id=run_id, done=done), 303)


def _payload(text: str) -> dict[str, Any]:
    try:
        read = usable(parsed(text, "the payload"))
    except BadRequest as error:
        raise RunInvalid({"payload": str(error.description)}) from None
    if not isinstance(read, dict):
        raise RunInvalid({"payload": 'must be a JSON object, such as {"user_id": 1}'})
    return read


def _expected() -> Container[str] | None:
    version = flask.request.form.get("version", "")
    return {version} if version else None
