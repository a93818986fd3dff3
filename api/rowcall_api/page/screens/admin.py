"""The audit log and the API keys, for admins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import flask
from werkzeug.exceptions import BadRequest

from rowcall.access import api_keys
from rowcall.access.audit import SUBJECTS
from rowcall.access.caller import Limits
from rowcall.base.database import LARGEST_ID, Connection
from rowcall.base.errors import ApiKeyInvalid, ApiKeyNameTaken, FilterInvalid, JobTypeUnknown, ScheduleInvalid
from rowcall.job_types import catalogue
from rowcall.queue.views.audit import AuditFilter
from rowcall.queue.views.keys import check_known, keys_page
from rowcall.schedule import moment
from rowcall_api.http.auth import operator
from rowcall_api.http.database import transaction
from rowcall_api.page import access, audited, forms, words
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import part
from rowcall_api.rights import must_be_allowed_to_manage_keys, must_be_allowed_to_rotate, must_not_outlive_this_key
from rowcall_api.schemas.keys import NewKeySchema
from rowcall_api.standby.requests import standby_may_answer

CRITERIA = ("who", "action", "subject", "subject_id", "after", "before")

UTC = ZoneInfo("UTC")

# The most hours for which an old key may stay valid after a rotation: 30 days.
GRACE_MOST = 720


@blueprint.get("/audit")
@standby_may_answer
@access.only_for("admin")
def audit() -> str:
    """Show who changed what, the newest first."""
    asked = {name: flask.request.args.get(name, "").strip() for name in CRITERIA}
    criteria, wrong = _criteria({name: text for name, text in asked.items() if text})
    cursor = flask.request.args.get("cursor") or None
    page = None if criteria is None else part(audited.entries, criteria, cursor)
    return flask.render_template("rowcall_page/audit.html", page=page, asked=asked, wrong=wrong, subjects=SUBJECTS)


@blueprint.get("/keys")
@access.only_for("admin")
def keys() -> str:
    """Show the API keys, the newest first."""
    return _keys({})


@blueprint.post("/keys")
@access.only_for("admin")
def create_key() -> flask.typing.ResponseReturnValue:
    """Create a key, which is shown in this response only."""
    form = flask.request.form
    sent: dict[str, Any] = {
        "name": form.get("name", "").strip(),
        "scopes": list(dict.fromkeys(form.getlist("scope"))),
        "job_types": _names(forms.text("job_types")),
        "queues": _names(forms.text("queues")),
    }
    wrong = {}
    try:
        if expires := forms.text("expires_at"):
            sent["expires_at"] = moment(expires, words.now(), UTC).isoformat()
    except ScheduleInvalid as error:
        wrong["expires_at"] = str(error)
    values, refused = forms.loaded(NewKeySchema(), sent)
    if wrong or refused:
        return _keys({**refused, **wrong}), 422
    try:
        key = _created(values)
    except (ApiKeyInvalid, ApiKeyNameTaken, JobTypeUnknown) as error:
        return _keys({_field_of(error): str(error)}), 422
    return flask.render_template("rowcall_page/new_key.html", room="page.keys", key=key, name=values["name"])


@blueprint.post("/keys/<int:key_id>/rotate")
@access.only_for("admin")
def rotate_key(key_id: int) -> str:
    """Replace a key; the old one stays valid for the hours that the form says."""
    hours = flask.request.form.get("hours", "24").strip()
    if not (hours.isascii() and hours.isdigit() and len(hours) <= 3 and int(hours) <= GRACE_MOST):
        raise BadRequest(
            f"the hours for which the old key stays valid must be a whole number from 0 to {GRACE_MOST}: go back, and"
            " rotate the key again"
        )
    with transaction() as connection:
        name = _manage(connection, key_id)
        rotated = api_keys.rotate_key(connection, key_id, timedelta(hours=int(hours)), operator())
        must_be_allowed_to_rotate(rotated.expires_at)
    return flask.render_template(
        "rowcall_page/new_key.html", room="page.keys", key=rotated.key, name=name, old=rotated.old_ends_at
    )


@blueprint.post("/keys/<int:key_id>/revoke")
@access.only_for("admin")
def revoke_key(key_id: int) -> flask.typing.ResponseReturnValue:
    """Revoke a key at once."""
    with transaction() as connection:
        _manage(connection, key_id)
        api_keys.revoke_key(connection, key_id, operator())
    return flask.redirect(flask.url_for("page.keys", done="revoke"), 303)


def _keys(wrong: Mapping[str, str]) -> str:
    return flask.render_template(
        "rowcall_page/keys.html",
        room="page.keys",
        page=part(keys_page, cursor=flask.request.args.get("cursor") or None),
        scopes=api_keys.SCOPES,
        wrong=wrong,
        sent=flask.request.form,
    )


def _created(values: Mapping[str, Any]) -> str:
    limits = Limits(values["job_types"], values["queues"])
    must_be_allowed_to_manage_keys(limits)
    must_not_outlive_this_key(values["expires_at"])
    with transaction() as connection:
        check_known(connection, limits, catalogue())
        return api_keys.create_key(
            connection, values["name"], values["scopes"], operator(), values["expires_at"], limits=limits
        )


def _field_of(error: ApiKeyInvalid | ApiKeyNameTaken | JobTypeUnknown) -> str:
    """Return the field of the form that an error is about."""
    if isinstance(error, ApiKeyInvalid):
        return error.field
    return "name" if isinstance(error, ApiKeyNameTaken) else "job_types"


def _names(text: str | None) -> list[str] | None:
    """Return the names in a list separated by commas or spaces; None if there are none."""
    return [name for name in re.split(r"[,\s]+", text or "") if name] or None


def _criteria(sent: Mapping[str, str]) -> tuple[AuditFilter | None, dict[str, str]]:
    """Return the filter of the address, or what is wrong with its fields."""
    values: dict[str, Any] = dict(sent)
    wrong = {}
    for name in sent.keys() & {"after", "before"}:
        try:
            values[name] = moment(sent[name], words.now(), UTC, past=True)
        except ScheduleInvalid as error:
            wrong[name] = str(error)
    if number := sent.get("subject_id"):
        if number.isascii() and number.isdigit() and len(number) < 20 and 0 < int(number) <= LARGEST_ID:
            values["subject_id"] = int(number)
        else:
            wrong["subject_id"] = "must be a whole number above 0"
    if wrong:
        return None, wrong
    try:
        return AuditFilter(**values), {}
    except FilterInvalid as error:
        return None, {name: str(why) for name, why in error.fields.items()}


def _manage(connection: Connection, key_id: int) -> str:
    """Refuse a key that may do more than the operator's own; return its name."""
    key = api_keys.get_key(connection, key_id)
    must_be_allowed_to_manage_keys(Limits(key["job_types"], key["queues"]))
    name: str = key["name"]
    return name
