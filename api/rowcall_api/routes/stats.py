"""/v1/stats: the state of the queues, workers and schedules."""

from __future__ import annotations

from rowcall.base.database import Row
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.schemas.stats import StatsSchema
from rowcall_api.standby.requests import standby_may_answer
from rowcall_api.stats import figures_now

blueprint = BodyBlueprint("stats", __name__, url_prefix="/v1/stats", description="The state of the whole system.")


@blueprint.get("")
@standby_may_answer
@blueprint.response(200, StatsSchema)
@needs("read")
def show_stats() -> Row:
    """Show counts of waiting, running and failed runs in each queue, and of workers.

    A count of 1000 means 1000 or more: counting stops there, so this request is always cheap.
    """
    return figures_now()
