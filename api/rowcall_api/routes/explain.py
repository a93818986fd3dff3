"""/v1/runs/{id}/explain: why a run has not run."""

from __future__ import annotations

from rowcall import effects
from rowcall.base import settings
from rowcall.job_types import catalogue
from rowcall.queue import Explained
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.schemas.explain import ExplainedSchema

blueprint = BodyBlueprint("explain", __name__, url_prefix="/v1/runs", description="Why a run is waiting.")


@blueprint.get("/<int:run_id>/explain")
@blueprint.response(200, ExplainedSchema)
@needs("read")
def explain_run(run_id: int) -> Explained:
    """Explain why a run has its status: the conditions for a claim, and the commands that would change them."""
    heartbeat = settings.read().heartbeat
    with transaction() as connection:
        return effects.explain_with_effects(connection, run_id, catalogue().limits, heartbeat, catalogue())
