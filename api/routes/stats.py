"""/v1/stats: what waits, runs and fails."""

from __future__ import annotations

from api.auth import needs
from api.body import BodyBlueprint
from api.figures import figures_now
from api.schemas.stats import StatsSchema
from shared.database import Row

blueprint = BodyBlueprint("stats", __name__, url_prefix="/v1/stats", description="How the whole is doing.")


@blueprint.get("")
@blueprint.response(200, StatsSchema)
@needs("read")
def show_stats() -> Row:
    """What waits in each queue, what runs, what fails, and who works.

    Counts stop at 1000, which then means so many or more; so this costs the same on any day.
    """
    return figures_now()
