"""The audit log and the API keys, for admins."""

from __future__ import annotations

from datetime import timedelta

import flask
from werkzeug.exceptions import BadRequest

from rowcall.access import api_keys
from rowcall.access.audit import SUBJECTS
from rowcall.access.caller import Limits
from rowcall.base.database import Connection
from rowcall.queue.views.audit import AuditFilter, list_audit
from rowcall.queue.views.keys import keys_page
from rowcall_api.http.auth import operator
from rowcall_api.http.database import transaction
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import part
from rowcall_api.rights import must_be_allowed_to_manage_keys, must_be_allowed_to_rotate, must_not_outlive_this_key


@blueprint.get("/audit")
@access.only_for("admin")
def audit() -> str:
    """Show who changed what, the newest first."""
    args = flask.request.args
    number = args.get("subject_id", "").strip()
    criteria = AuditFilter(
        who=args.get("who", "").strip() or None,
        action=args.get("action", "").strip() or None,
        subject=args.get("subject") or None,
        subject_id=int(number) if number.isascii() and number.isdigit() else None,
    )
    page = part(list_audit, criteria, 50, args.get("cursor") or None)
    return flask.render_template("rowcall_page/audit.html", page=page, criteria=criteria, subjects=SUBJECTS)


@blueprint.get("/keys")
@access.only_for("admin")
def keys() -> str:
    """Show the API keys, the newest first."""
    page = part(keys_page, cursor=flask.request.args.get("cursor") or None)
    return flask.render_template("rowcall_page/keys.html", page=page, scopes=api_keys.SCOPES)


@blueprint.post("/keys")
@access.only_for("admin")
def create_key() -> str:
    """Create a key, which is shown in this response only."""
    form = flask.request.form
    limits = flask.g.caller.limits
    must_be_allowed_to_manage_keys(limits)
    must_not_outlive_this_key(None)
    with transaction() as connection:
        key = api_keys.create_key(
            connection, form.get("name", "").strip(), form.getlist("scope"), operator(), limits=limits
        )
    return flask.render_template("rowcall_page/new_key.html", room="page.keys", key=key)


@blueprint.post("/keys/<int:key_id>/rotate")
@access.only_for("admin")
def rotate_key(key_id: int) -> str:
    """Replace a key; the old one stays valid for the hours that the form says."""
    hours = flask.request.form.get("hours", "24")
    if not (hours.isascii() and hours.isdigit() and int(hours) <= 720):
        raise BadRequest("the hours for which the old key stays valid must be a whole number from 0 to 720")
    with transaction() as connection:
        _manage(connection, key_id)
        rotated = api_keys.rotate_key(connection, key_id, timedelta(hours=int(hours)), operator())
        must_be_allowed_to_rotate(rotated.expires_at)
    return flask.render_template(
        "rowcall_page/new_key.html", room="page.keys", key=rotated.key, old=rotated.old_ends_at
    )


@blueprint.post("/keys/<int:key_id>/revoke")
@access.only_for("admin")
def revoke_key(key_id: int) -> flask.typing.ResponseReturnValue:
    """Revoke a key at once."""
    with transaction() as connection:
        _manage(connection, key_id)
        api_keys.revoke_key(connection, key_id, operator())
    return flask.redirect(flask.url_for("page.keys", done="revoke"), 303)


def _manage(connection: Connection, key_id: int) -> None:
    """Refuse a key that may do more than the operator's own."""
    key = api_keys.get_key(connection, key_id)
    must_be_allowed_to_manage_keys(Limits(key["job_types"], key["queues"]))
