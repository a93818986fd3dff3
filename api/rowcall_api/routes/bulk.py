"""/v1/runs/retry and /v1/runs/cancel: what an operator does to many runs."""

from __future__ import annotations

from typing import Any

from rowcall import queue
from rowcall.queue import Action, Filter
from rowcall_api.http.auth import needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.schemas.bulk import BulkDoneSchema, BulkSchema

blueprint = BodyBlueprint("bulk", __name__, url_prefix="/v1/runs", description="What an operator does to many runs.")


@blueprint.post("/retry")
@blueprint.arguments(BulkSchema)
@blueprint.response(200, BulkDoneSchema)
@needs("operate")
def retry_runs(asked: dict[str, Any]) -> dict[str, Any]:
    """Give the dead and cancelled runs that match a new life, the newest first."""
    return _done(Action.RETRY, asked)


@blueprint.post("/cancel")
@blueprint.arguments(BulkSchema)
@blueprint.response(200, BulkDoneSchema)
@needs("operate")
def cancel_runs(asked: dict[str, Any]) -> dict[str, Any]:
    """Cancel the waiting runs that match, and ask the workers of running ones to stop, the newest first."""
    return _done(Action.CANCEL, asked)


def _done(action: Action, asked: dict[str, Any]) -> dict[str, Any]:
    wanted = Filter(**asked.pop("filter"))
    everything = asked.pop("all")
    with transaction() as connection:
        done = queue.bulk(connection, action, wanted, operator(), everything=everything, **asked)
    changed = 0 if done.dry_run else len(done.ids)
    return {**vars(done), "changed": changed, "more": done.next is not None}
