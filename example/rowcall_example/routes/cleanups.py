"""/v1/cleanups: enqueue a day's cleanup."""

from __future__ import annotations

from typing import Any

from rowcall_api.app_routes import Answer, Blueprint, EnqueueHeaders, answers_with_a_run, enqueue_and_answer, needs
from rowcall_example.job_types import CLEANUP_NIGHTLY

blueprint = Blueprint("cleanups", __name__, url_prefix="/v1/cleanups", description="Deletion of expired rows.")


@blueprint.post("")
@blueprint.arguments(CLEANUP_NIGHTLY.schema)
@blueprint.arguments(EnqueueHeaders, location="headers")
@answers_with_a_run(blueprint)
@needs("enqueue")
def clean_up(payload: dict[str, Any], headers: dict[str, Any]) -> Answer:
    """Delete cache entries that have expired by the end of a day (UTC), and sessions that had expired 15 days earlier.

    Without an `Idempotency-Key`, the day is the key.
    """
    return enqueue_and_answer(CLEANUP_NIGHTLY.name, CLEANUP_NIGHTLY.schema().dump(payload), headers["idempotency_key"])
