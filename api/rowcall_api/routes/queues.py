"""/v1/queues: pause, resume and limit queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row
from rowcall.job_types import catalogue
from rowcall.queue.views.stats import counted_queue, queues_page
from rowcall_api.http.auth import needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.rights import must_be_allowed_to_change_queue, shown
from rowcall_api.schemas.queues import PartialQueueSchema, QueueLimitSchema, QueueListSchema, QueueSchema, QueuesQuery
from rowcall_api.standby.requests import standby_may_answer

blueprint = BodyBlueprint("queues", __name__, url_prefix="/v1/queues", description="Queues, their pauses and limits.")


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(QueuesQuery, location="query")
@blueprint.response(200, QueueListSchema)
@needs("read")
def list_queues(query: Mapping[str, Any]) -> dict[str, Any]:
    """List the queues that have live runs, settings or a job type, by name."""
    types = catalogue()
    with transaction() as connection:
        items, following = queues_page(connection, types.queues, types.limits, query["cursor"])
    return {"items": items, "next": following}


@blueprint.get("/<name>")
@blueprint.response(200, QueueSchema)
@needs("read")
def show_queue(name: str) -> Row:
    """Show one queue."""
    with transaction() as connection:
        return _counted(connection, name)


@blueprint.post("/<name>/pause")
@blueprint.response(200, PartialQueueSchema)
@needs("operate")
def pause_queue(name: str) -> Row:
    """Pause this queue: running runs continue, and all others wait.

    If the queue does not exist, it is created.
    """
    return _changed(name, queue.pause_queue)


@blueprint.post("/<name>/resume")
@blueprint.response(200, PartialQueueSchema)
@needs("operate")
def resume_queue(name: str) -> Row:
    """Resume this queue, so that workers claim from it again.

    If the queue does not exist, it is created, so that keys without the scope `operate` may
    enqueue to it too.
    """
    return _changed(name, queue.resume_queue)


@blueprint.put("/<name>/limit")
@blueprint.arguments(QueueLimitSchema)
@blueprint.response(200, PartialQueueSchema)
@needs("operate")
def limit_queue(sent: Mapping[str, Any], name: str) -> Row:
    """Limit how many runs of this queue run at a time, across all workers."""
    return _changed(name, lambda connection, name, by: queue.limit_queue(connection, name, sent["max_running"], by))


@blueprint.delete("/<name>/settings")
@blueprint.response(204)
@needs("operate")
def remove_queue_settings(name: str) -> None:
    """Remove the pause and the limit of this queue, for example if the name was misspelt.  Its runs stay."""
    must_be_allowed_to_change_queue(name)
    with transaction() as connection:
        queue.remove_queue(connection, name, operator())


def _changed(name: str, change: Callable[[Connection, str, Operator], Row]) -> Row:
    must_be_allowed_to_change_queue(name)
    with transaction() as connection:
        change(connection, name, operator())
        return shown(_counted(connection, name), PartialQueueSchema)


def _counted(connection: Connection, name: str) -> Row:
    types = catalogue()
    return counted_queue(connection, name, types.queues, types.limits)
