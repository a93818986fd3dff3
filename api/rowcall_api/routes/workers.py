"""/v1/workers: which workers there are, and what each is doing."""

from __future__ import annotations

from typing import Any

from rowcall.base import settings
from rowcall.queue.views import handed_over
from rowcall.queue.views.workers import list_workers as workers_page
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.schemas.workers import HandedOverSchema, WorkerListSchema, WorkersQuery
from rowcall_api.standby.requests import standby_may_answer

blueprint = BodyBlueprint(
    "workers", __name__, url_prefix="/v1/workers", description="Workers, and what they are doing."
)


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(WorkersQuery, location="query")
@blueprint.response(200, WorkerListSchema)
@needs("read")
def list_workers(query: dict[str, Any]) -> dict[str, Any]:
    """List workers, the newest first, and the runs that each is performing."""
    heartbeat = settings.read().heartbeat
    with transaction() as connection:
        page = workers_page(connection, **query, heartbeat=heartbeat)
    return {"items": page.workers, "next": page.next}


@blueprint.get("/handed-over")
@standby_may_answer
@blueprint.response(200, HandedOverSchema)
@needs("read")
def list_handed_over() -> handed_over.HandedOver:
    """List where runs were handed over: the messages that wait for a consumer, and the consumers that perform runs.

    A consumer is seen while it performs a run that was handed over to it.
    """
    with transaction() as connection:
        return handed_over.list_handed_over(connection, heartbeat=settings.read().heartbeat)
