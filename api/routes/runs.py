"""/v1/runs: ask for a run, and see what became of it."""

from __future__ import annotations

from typing import Any

from api.auth import needs
from api.body import BodyBlueprint
from api.database import transaction
from api.enqueuing import Answer, enqueue_and_answer
from api.schemas.runs import EnqueueHeaders, EnqueueSchema, RunSchema
from shared.database import Row
from shared.queue import get_run

blueprint = BodyBlueprint(
    "runs", __name__, url_prefix="/v1/runs", description="Things that run once, and their status."
)


@blueprint.post("")
@blueprint.arguments(EnqueueSchema)
@blueprint.arguments(EnqueueHeaders, location="headers")
@blueprint.response(202, RunSchema)
@blueprint.alt_response(200, schema=RunSchema, description="The key was seen before with this content: the same run.")
@needs("enqueue")
def enqueue_run(wanted: dict[str, Any], headers: dict[str, Any]) -> Answer:
    """Ask for a run.  It is committed when this answers."""
    return enqueue_and_answer(wanted.pop("job_type"), wanted.pop("payload"), headers["idempotency_key"], **wanted)


@blueprint.get("/<int:run_id>")
@blueprint.response(200, RunSchema)
@needs("read")
def show_run(run_id: int) -> Row:
    """One run."""
    with transaction() as connection:
        return get_run(connection, run_id)
