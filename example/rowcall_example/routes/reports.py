"""/v1/reports: enqueue a user's weekly report."""

from __future__ import annotations

from typing import Any

from rowcall_api.app_routes import (
    Answer,
    Blueprint,
    EnqueueHeaders,
    Problem,
    answers_with_a_run,
    enqueue_and_answer,
    needs,
)
from rowcall_example.errors import UserNotFound
from rowcall_example.job_types import SEND_WEEKLY_REPORT
from rowcall_example.queries.users import get_user
from rowcall_example.sql import Connection

blueprint = Blueprint("reports", __name__, url_prefix="/v1/reports", description="Reports that are sent to users.")


@blueprint.post("/weekly")
@blueprint.arguments(SEND_WEEKLY_REPORT.schema)
@blueprint.arguments(EnqueueHeaders, location="headers")
@answers_with_a_run(blueprint)
@needs("enqueue")
def send_weekly_report(payload: dict[str, Any], headers: dict[str, Any]) -> Answer:
    """Send a user the report of a week.

    Without an `Idempotency-Key`, user and week are the key: a report is sent once. If the user does not exist, the
    response is 422.
    """

    def must_exist(connection: Connection) -> None:
        try:
            get_user(connection, payload["user_id"])
        except UserNotFound as error:
            raise Problem(422, "user-not-found", str(error), errors={"user_id": str(error)}) from None

    # `payload` contains the values that the schema parsed from the body; a run stores their JSON form.
    stored = SEND_WEEKLY_REPORT.schema().dump(payload)
    return enqueue_and_answer(SEND_WEEKLY_REPORT.name, stored, headers["idempotency_key"], must_exist)
