"""/v1/runs/retry and /v1/runs/cancel: an operator's changes to many runs."""

from __future__ import annotations

from typing import Any

import flask

from rowcall import queue
from rowcall.queue import Action, Filter
from rowcall_api.http.auth import needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.rights import must_be_allowed_to_change_many
from rowcall_api.schemas.bulk import BulkDoneSchema, BulkSchema

blueprint = BodyBlueprint("bulk", __name__, url_prefix="/v1/runs", description="Changes to many runs by an operator.")


@blueprint.post("/retry")
@blueprint.arguments(BulkSchema)
@blueprint.response(200, BulkDoneSchema)
@needs("operate")
def retry_runs(arguments: dict[str, Any]) -> dict[str, Any]:
    """Queue matching dead and cancelled runs again, the newest first."""
    return _change(Action.RETRY, arguments)


@blueprint.post("/cancel")
@blueprint.arguments(BulkSchema)
@blueprint.response(200, BulkDoneSchema)
@needs("operate")
def cancel_runs(arguments: dict[str, Any]) -> dict[str, Any]:
    """Cancel matching runs, the newest first; ask the workers of running ones to stop."""
    return _change(Action.CANCEL, arguments)


def _change(action: Action, arguments: dict[str, Any]) -> dict[str, Any]:
    sent = arguments.pop("filter")
    must_be_allowed_to_change_many(sent)
    criteria = Filter(**sent)
    everything = arguments.pop("all")
    with transaction() as connection:
        queue.limit_searches(connection, criteria, flask.g.caller.key_id)
        done = queue.bulk(connection, action, criteria, operator(), everything=everything, **arguments)
    changed = 0 if done.dry_run else len(done.ids)
    return {**vars(done), "changed": changed, "more": done.next is not None}
