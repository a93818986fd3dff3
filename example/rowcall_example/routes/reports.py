"""/v1/reports: ask for a user's weekly report."""

from __future__ import annotations

from typing import Any

from rowcall_api.enqueue import Answer, answers_with_a_run, enqueue_and_answer
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.schemas.runs import EnqueueHeaders
from rowcall_example.business.users import get_user
from rowcall_example.job_types import SEND_WEEKLY_REPORT

blueprint = BodyBlueprint("reports", __name__, url_prefix="/v1/reports", description="Reports that are sent to users.")


@blueprint.post("/weekly")
@blueprint.arguments(SEND_WEEKLY_REPORT.schema)
@blueprint.arguments(EnqueueHeaders, location="headers")
@answers_with_a_run(blueprint)
@needs("enqueue")
def send_weekly_report(wanted: dict[str, Any], headers: dict[str, Any]) -> Answer:
    """Send a user the report of a week.

    Without an `Idempotency-Key` user and week are the key: a report is sent once. A user that does not exist is a wrong
    field, and answered 422.
    """
    return enqueue_and_answer(
        SEND_WEEKLY_REPORT.name,
        SEND_WEEKLY_REPORT.schema().dump(wanted),
        headers["idempotency_key"],
        must_exist=lambda connection: get_user(connection, wanted["user_id"]),
    )
