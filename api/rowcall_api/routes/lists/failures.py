"""/v1/failures: how often each job type has failed with each error."""

from __future__ import annotations

from typing import Any

from rowcall.queue.failures.list import list_failures as failures_now
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.schemas.lists.failures import FailureListSchema, FailuresQuery
from rowcall_api.standby.requests import standby_may_answer

blueprint = BodyBlueprint(
    "failures", __name__, url_prefix="/v1/failures", description="Failed attempts, by job type and error."
)


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(FailuresQuery, location="query")
@blueprint.response(200, FailureListSchema)
@needs("read")
def list_failures(query: dict[str, Any]) -> dict[str, Any]:
    """List the errors that made attempts fail in the last week, the most frequent in the last hour first.

    Every failed attempt counts, even if a later attempt of its run succeeded. The counts cover whole minutes.
    """
    with transaction() as connection:
        found = failures_now(connection, **query)
    return {"items": found.errors, "complete": found.complete}
