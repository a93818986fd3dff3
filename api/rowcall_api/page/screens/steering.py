"""The buttons of one run: each form calls the function that the API's route calls."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Container
from datetime import datetime
from typing import Any

import flask
from marshmallow import ValidationError
from werkzeug.exceptions import BadRequest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import Row
from rowcall.base.errors import RunInvalid, ScheduleInvalid
from rowcall_api.http.body import parsed, usable
from rowcall_api.http.database import transaction
from rowcall_api.page import access, forms
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.filters import time_in_words
from rowcall_api.page.screens.run import Draft, screen
from rowcall_api.rights import may, must_be_allowed_to_enqueue, must_be_allowed_to_steer

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
        EVENTS[event](connection, run_id, _reasoned(), _expected())
    return _shown(run_id, event.removeprefix("force-"))


@blueprint.post("/runs/<int:run_id>/reschedule")
@access.only_for("operate")
def reschedule(run_id: int) -> flask.typing.ResponseReturnValue:
    """Make a run due at another time, which may be in words."""
    try:
        with transaction() as connection:
            must_be_allowed_to_steer(connection, run_id)
            queue.reschedule(connection, run_id, _reasoned(), _time("run_at"), _expected())
    except RunInvalid as error:
        return _again(run_id, "reschedule", error)
    return _shown(run_id, "reschedule")


@blueprint.post("/runs/<int:run_id>/clone")
@access.only_for("operate")
def clone(run_id: int) -> flask.typing.ResponseReturnValue:
    """Enqueue a copy of a run, with another payload if the form has one."""
    try:
        with transaction() as connection:
            must_be_allowed_to_steer(connection, run_id)
            original = queue.get_run(connection, run_id)
            must_be_allowed_to_enqueue(connection, original["job_type"], original["queue"])
            once = flask.request.form.get("once") or None
            outcome = queue.clone(connection, run_id, _reasoned(), _expected(), key=once, **_changes(original))
    except RunInvalid as error:
        return _again(run_id, "clone", error)
    return _shown(outcome.run_id, "clone")


def _again(run_id: int, form: str, error: RunInvalid) -> flask.typing.ResponseReturnValue:
    """Show the run with the form as it was sent, and what is wrong with it."""
    wrong = {name: forms.in_a_sentence(why) for name, why in error.fields.items()}
    return screen(run_id, Draft(form, flask.request.form, wrong)), 422


def _reasoned() -> Operator:
    """Return the operator with the reason from the form; raise RunInvalid if the reason cannot be stored."""
    found, wrong = forms.with_reason()
    if wrong:
        raise RunInvalid(wrong)
    return found


def _shown(run_id: int, done: str) -> flask.typing.ResponseReturnValue:
    """Redirect to the run."""
    return flask.redirect(flask.url_for("page.run", run_id=run_id, done=done), 303)


def _changes(original: Row) -> dict[str, Any]:
    """Return the payload of the form if it differs from the original's; an unchanged one keeps its natural key."""
    text = forms.text("payload")
    if not text:
        return {}
    try:
        read = usable(parsed(text, "it"))
    except BadRequest as error:
        raise RunInvalid({"payload": str(error.description)}) from None
    except ValidationError as error:
        raise RunInvalid({"payload": error.messages}) from None
    if not isinstance(read, dict):
        raise RunInvalid({"payload": 'must be a JSON object, such as {"user_id": 1}'})
    # Without the scope `read`, a comparison would tell whether a guess is right.
    return {} if may("read") and _same(read, original["payload"]) else {"payload": read}


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both are the same JSON; in Python, 1, 1.0 and True are equal."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _time(name: str) -> datetime:
    try:
        return time_in_words(flask.request.form.get(name, "").strip())
    except ScheduleInvalid as error:
        raise RunInvalid({name: str(error)}) from None


def _expected() -> Container[str] | None:
    version = flask.request.form.get("version", "")
    return {version} if version else None
