"""/v1/runs: ask for a run, and see what became of it."""

from __future__ import annotations

from typing import Any

from api.auth import needs
from api.body import BodyBlueprint
from api.database import transaction
from api.enqueuing import Answer, answers_with_a_run, enqueue_and_answer
from api.schemas.runs import EnqueueHeaders, EnqueueSchema, RunSchema
from shared.database import Row
from shared.queue import get_run

blueprint = BodyBlueprint(
    "runs", __name__, url_prefix="/v1/runs", description="Things that run once, and their status."
)


@blueprint.post("")
@blueprint.arguments(EnqueueSchema)
@blueprint.arguments(EnqueueHeaders, location="headers")
@answers_with_a_run(blueprint)
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
