"""/v1/keys: manage API keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import flask

from rowcall.access import api_keys
from rowcall.access.caller import Limits
from rowcall.base.database import Connection, Row
from rowcall.job_types import catalogue
from rowcall.queue.views.keys import check_known, keys_page
from rowcall_api.http import rate_limit
from rowcall_api.http.auth import ANY_KEY, needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.rights import (
    must_be_allowed_to_manage_keys,
    must_be_allowed_to_rotate,
    must_not_outlive_this_key,
)
from rowcall_api.schemas.keys import (
    CreatedKeySchema,
    KeyListSchema,
    KeySchema,
    KeysQuery,
    NewKeySchema,
    OwnKeySchema,
    RotatedKeySchema,
    RotationSchema,
)

blueprint = BodyBlueprint("keys", __name__, url_prefix="/v1/keys", description="API keys.")


@blueprint.get("")
@blueprint.arguments(KeysQuery, location="query")
@blueprint.response(200, KeyListSchema)
@needs("admin")
def list_keys(query: dict[str, Any]) -> dict[str, Any]:
    """List all keys that were ever created, without their secrets, the newest first."""
    with transaction() as connection:
        items, following = keys_page(connection, **query)
    return {"items": items, "next": following}


@blueprint.get("/me")
@blueprint.response(200, OwnKeySchema)
@needs(ANY_KEY)
def show_own_key() -> Row:
    """Show the key of this request: its scopes, its limits, and when it expires."""
    with transaction() as connection:
        row = api_keys.get_key(connection, flask.g.caller.key_id)
    return {**row, "rate_limit": rate_limit.policy()}


@blueprint.post("")
@blueprint.arguments(NewKeySchema)
@blueprint.response(201, CreatedKeySchema)
@needs("admin")
def create_key(sent: dict[str, Any]) -> Row:
    """Create a key.  Only this response contains its secret.

    If the response is lost, the key exists, but nobody knows its secret: rotate it without a grace period.
    """
    limits = Limits(sent["job_types"], sent["queues"])
    must_be_allowed_to_manage_keys(limits)
    must_not_outlive_this_key(sent["expires_at"])
    scopes = list(dict.fromkeys(sent["scopes"]))
    with transaction() as connection:
        check_known(connection, limits, catalogue())
        key = api_keys.create_key(connection, sent["name"], scopes, operator(), sent["expires_at"], limits=limits)
        return {**api_keys.get_key(connection, api_keys.id_of(connection, key)), "key": key}


@blueprint.post("/<int:key_id>/rotate")
@blueprint.arguments(RotationSchema, required=False)
@blueprint.response(200, RotatedKeySchema)
@needs("admin")
def rotate_key(sent: dict[str, Any], key_id: int) -> Row:
    """Replace this key with a new one that has the same name, scopes, limits and lifetime.

    Only this response contains the secret of the new key.  The old key stops working after the grace period.
    """
    with transaction() as connection:
        _manage(connection, key_id)
        rotated = api_keys.rotate_key(connection, key_id, timedelta(seconds=sent["grace_seconds"]), operator())
        must_be_allowed_to_rotate(rotated.expires_at)
        new = api_keys.get_key(connection, api_keys.id_of(connection, rotated.key))
    return {**new, "key": rotated.key, "replaces": key_id, "old_ends_at": rotated.old_ends_at}


@blueprint.post("/<int:key_id>/revoke")
@blueprint.response(200, KeySchema)
@needs("admin")
def revoke_key(key_id: int) -> Row:
    """Revoke this key at once."""
    with transaction() as connection:
        _manage(connection, key_id)
        api_keys.revoke_key(connection, key_id, operator())
        return api_keys.get_key(connection, key_id)


def _manage(connection: Connection, key_id: int) -> None:
    """Refuse a key that may do more than this request's own; the limits of a key never change."""
    key = api_keys.get_key(connection, key_id)
    must_be_allowed_to_manage_keys(Limits(key["job_types"], key["queues"]))
