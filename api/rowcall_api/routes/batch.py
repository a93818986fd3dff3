"""/v1/runs/batch: enqueue many runs in one request, all or none."""

from __future__ import annotations

from typing import Any

import flask
from webargs.flaskparser import abort

from rowcall.base.logs import LogEvent, log
from rowcall.queue import BatchRun, enqueue_batch
from rowcall_api.http.auth import needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.rights import must_be_allowed_to_enqueue_all
from rowcall_api.schemas.batch import BatchOutcomesSchema, BatchSchema

blueprint = BodyBlueprint("batch", __name__, url_prefix="/v1/runs", description="Many runs in one request.")


# Refused, because a repeated batch would not be recognized by it.
KEY_HEADER = "Idempotency-Key"


@blueprint.post("/batch")
@blueprint.arguments(BatchSchema)
@blueprint.alt_response(
    200, schema=BatchOutcomesSchema, description="All of the runs already existed; nothing was enqueued."
)
@blueprint.response(202, BatchOutcomesSchema, description="At least one run is new. All are committed.")
@needs("enqueue")
def enqueue_runs(sent: dict[str, list[BatchRun]]) -> tuple[dict[str, Any], int]:
    """Enqueue up to 1,000 runs of any types, all or none.

    Each run can have its own idempotency key, which makes it safe to repeat the request.  If one run is refused,
    nothing is enqueued, and `errors` points to it.
    """
    if KEY_HEADER in flask.request.headers:
        abort(422, messages={"headers": {KEY_HEADER: ["a batch has one for each run: send it as idempotency_key"]}})
    runs = sent["runs"]
    with transaction() as connection:
        must_be_allowed_to_enqueue_all(connection, runs)
        outcomes = enqueue_batch(connection, operator(), runs)
    new = sum(not outcome.replayed for outcome in outcomes)
    log().info(LogEvent.BATCH_ENQUEUED, runs=len(runs), new=new)
    items = [{"id": outcome.run_id, "replayed": outcome.replayed} for outcome in outcomes]
    return {"items": items, "new": new}, 202 if new else 200
