"""/v1/runs: ask for a run, and see what became of it."""

from __future__ import annotations

from typing import Any

import flask

from api.auth import needs
from api.body import BodyBlueprint
from api.database import transaction
from api.schemas.runs import EnqueueHeaders, EnqueueSchema, RunSchema
from shared.database import Row
from shared.logs import LogEvent, log
from shared.queue import enqueue, get_run

blueprint = BodyBlueprint(
    "runs", __name__, url_prefix="/v1/runs", description="Things that run once, and their status."
)


@blueprint.post("")
@blueprint.arguments(EnqueueSchema)
@blueprint.arguments(EnqueueHeaders, location="headers")
@blueprint.response(202, RunSchema)
@blueprint.alt_response(200, schema=RunSchema, description="The key was seen before with this content: the same run.")
@needs("enqueue")
def enqueue_run(wanted: dict[str, Any], headers: dict[str, Any]) -> tuple[Row, int, dict[str, str]]:
    """Ask for a run.  It is committed when this answers."""
    with transaction() as connection:
        outcome = enqueue(
            connection,
            wanted.pop("job_type"),
            wanted.pop("payload"),
            key=headers["idempotency_key"],
            created_by=flask.g.caller.name,
            **wanted,
        )
        run = get_run(connection, outcome.run_id)
    log().info(LogEvent.RUN_ENQUEUED, run_id=run["id"], job_type=run["job_type"], replayed=outcome.replayed)
    answer = {"Location": f"/v1/runs/{outcome.run_id}"}
    if outcome.replayed:
        return run, 200, {**answer, "Idempotent-Replayed": "true"}
    return run, 202, answer


@blueprint.get("/<int:run_id>")
@blueprint.response(200, RunSchema)
@needs("read")
def show_run(run_id: int) -> Row:
    """One run."""
    with transaction() as connection:
        return get_run(connection, run_id)
