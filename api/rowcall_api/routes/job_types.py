"""/v1/job-types: what can be enqueued, and what its payload needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowcall.job_types import catalogue
from rowcall.queue.views import pages
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.schemas.job_types import JobTypeListSchema, JobTypesQuery, described

blueprint = BodyBlueprint("job_types", __name__, url_prefix="/v1/job-types", description="What can be enqueued.")


@blueprint.get("")
@blueprint.arguments(JobTypesQuery, location="query")
@blueprint.response(200, JobTypeListSchema)
@needs("read")
def list_job_types(query: Mapping[str, Any]) -> dict[str, Any]:
    """List the job types of the app and of Rowcall itself, by name, with the JSON Schema of their payloads."""
    known = [described(job_type) for job_type in catalogue().values()]
    items, following = pages.by_name("job types", known, query["cursor"])
    return {"items": items, "next": following}
