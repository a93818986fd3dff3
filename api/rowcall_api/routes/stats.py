"""/v1/stats: what waits, runs and fails."""

from __future__ import annotations

from rowcall.base.database import Row
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.schemas.stats import StatsSchema
from rowcall_api.stats import figures_now

blueprint = BodyBlueprint("stats", __name__, url_prefix="/v1/stats", description="The state of the whole system.")


@blueprint.get("")
@blueprint.response(200, StatsSchema)
@needs("read")
def show_stats() -> Row:
    """What waits in each queue, what runs and fails, and how many workers there are.

    Counts stop at 1000, which means 1000 or more, so that this costs the same on any day.
    """
    return figures_now()
