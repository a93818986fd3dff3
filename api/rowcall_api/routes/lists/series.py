"""/v1/series: throughput, waiting times and run times over time, and deploys, for charts."""

from __future__ import annotations

from typing import Any

from rowcall.queue.series.read import read_series
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.schemas.lists.series import SeriesQuery, SeriesSchema
from rowcall_api.standby.requests import standby_may_answer

blueprint = BodyBlueprint("series", __name__, url_prefix="/v1/series", description="Throughput and times, for charts.")


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(SeriesQuery, location="query")
@blueprint.response(200, SeriesSchema)
@needs("read")
def show_series(query: dict[str, Any]) -> dict[str, Any]:
    """Show, for each step of a period, how attempts ended, how long runs waited and how long handlers ran.

    Workers write their counts with their heartbeats, so the last minute is incomplete, and a worker that dies loses
    what it counted since its last heartbeat. Counts are kept for 8 days.
    """
    with transaction() as connection:
        return vars(read_series(connection, **query))
