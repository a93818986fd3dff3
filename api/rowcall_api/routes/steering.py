"""/v1/runs/{id}/retry, cancel, run-now, reschedule and clone: an operator's changes to one run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container
from typing import Any

from werkzeug.http import parse_etags

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row
from rowcall_api.enqueue import Answer, answer, answers_with_a_run
from rowcall_api.http.auth import needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.rights import must_be_allowed_to_enqueue, must_be_allowed_to_steer, shown
from rowcall_api.schemas.runs import (
    CancelSchema,
    CloneHeaders,
    CloneSchema,
    PartialRunSchema,
    RescheduleSchema,
    SteerHeaders,
    tagged,
)

blueprint = BodyBlueprint("steering", __name__, url_prefix="/v1/runs", description="Changes to one run by an operator.")


@blueprint.post("/<int:run_id>/retry")
@blueprint.arguments(SteerHeaders, location="headers")
@blueprint.response(200, PartialRunSchema, headers={"ETag": "ETag"})
@needs("operate")
def retry_run(headers: dict[str, Any], run_id: int) -> tuple[Row, int, dict[str, str]]:
    """Queue a dead or cancelled run again, with its full number of attempts."""
    return _steered(queue.retry, run_id, headers)


@blueprint.post("/<int:run_id>/cancel")
@blueprint.arguments(CancelSchema, required=False)
@blueprint.arguments(SteerHeaders, location="headers")
@blueprint.response(200, PartialRunSchema, headers={"ETag": "ETag"})
@needs("operate")
def cancel_run(options: dict[str, Any], headers: dict[str, Any], run_id: int) -> tuple[Row, int, dict[str, str]]:
    """Cancel a waiting run; ask the worker of a running one to stop it, or cancel it by force."""
    return _steered(functools.partial(queue.cancel_any, force=options["force"]), run_id, headers)


@blueprint.post("/<int:run_id>/run-now")
@blueprint.arguments(SteerHeaders, location="headers")
@blueprint.response(200, PartialRunSchema, headers={"ETag": "ETag"})
@needs("operate")
def run_now(headers: dict[str, Any], run_id: int) -> tuple[Row, int, dict[str, str]]:
    """Make a waiting run due now; the attempts already made still count."""
    return _steered(queue.run_now, run_id, headers)


@blueprint.post("/<int:run_id>/reschedule")
@blueprint.arguments(RescheduleSchema)
@blueprint.arguments(SteerHeaders, location="headers")
@blueprint.response(200, PartialRunSchema, headers={"ETag": "ETag"})
@needs("operate")
def reschedule_run(options: dict[str, Any], headers: dict[str, Any], run_id: int) -> tuple[Row, int, dict[str, str]]:
    """Make a waiting run due at another time; the attempts already made still count."""

    def event(connection: Connection, run_id: int, operator: Operator, expected: Container[str] | None) -> Row:
        return queue.reschedule(connection, run_id, operator, options["run_at"], expected)

    return _steered(event, run_id, headers)


@blueprint.post("/<int:run_id>/clone")
@blueprint.arguments(CloneSchema, required=False)
@blueprint.arguments(CloneHeaders, location="headers")
@answers_with_a_run(blueprint, PartialRunSchema)
@needs("operate")
def clone_run(changes: dict[str, Any], headers: dict[str, Any], run_id: int) -> Answer:
    """Enqueue a copy of this run with these changes.  The key also needs the scope that the run's job type requires."""
    with transaction() as connection:
        must_be_allowed_to_steer(connection, run_id)
        original = queue.get_run(connection, run_id)
        to = changes.get("queue") or original["queue"]
        must_be_allowed_to_enqueue(connection, original["job_type"], to, changes.get("priority"))
        outcome = queue.clone(
            connection, run_id, operator(), _expected(headers), key=headers["idempotency_key"], **changes
        )
        run = queue.get_run(connection, outcome.run_id)
    return answer(run, outcome.replayed, own=False)


def _steered(
    event: Callable[[Connection, int, Operator, Container[str] | None], Row], run_id: int, headers: dict[str, Any]
) -> tuple[Row, int, dict[str, str]]:
    with transaction() as connection:
        must_be_allowed_to_steer(connection, run_id)
        run = event(connection, run_id, operator(), _expected(headers))
    return shown(run, PartialRunSchema), 200, tagged(run)


def _expected(headers: dict[str, Any]) -> Container[str] | None:
    return None if headers["if_match"] is None else parse_etags(headers["if_match"])
