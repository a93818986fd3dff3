"""/v1/operations: an operator's changes to many runs, which workers carry out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flask

from rowcall import effects, queue
from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row
from rowcall.queue import operations
from rowcall.queue.operations import Action
from rowcall_api.http.auth import needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.rights import must_be_allowed_to_change_many, must_be_allowed_to_steer_operation, shown
from rowcall_api.schemas.operations import (
    OperationListSchema,
    OperationPreviewSchema,
    OperationSchema,
    OperationsQuery,
    PartialOperationSchema,
    RefusalListSchema,
    RefusalsQuery,
    RequestedSchema,
    SampleSchema,
    StartSchema,
    requested_of,
)
from rowcall_api.schemas.runs import EnqueueHeaders
from rowcall_api.standby.requests import standby_may_answer

blueprint = BodyBlueprint(
    "operations",
    __name__,
    url_prefix="/v1/operations",
    description="Changes to many runs by an operator, which workers carry out.",
)


@blueprint.post("/preview")
@blueprint.arguments(RequestedSchema)
@blueprint.response(200, OperationPreviewSchema)
@needs("operate")
def preview_operation(sent: dict[str, Any]) -> dict[str, Any]:
    """Count the runs that an operation would change now, and name some of them."""
    must_be_allowed_to_change_many(sent["filter"])
    requested = requested_of(sent)
    with transaction() as connection:
        queue.limit_searches(connection, requested.criteria, flask.g.caller.key_id)
        unresolved = effects.unresolved_runs(connection) if requested.action is Action.RETRY else None
        found = operations.preview(connection, requested, unresolved=unresolved)
    return {**vars(found), "samples": [shown(run, SampleSchema) for run in found.samples]}


@blueprint.post("")
@blueprint.arguments(StartSchema)
@blueprint.arguments(EnqueueHeaders, location="headers")
@blueprint.alt_response(
    200,
    schema=PartialOperationSchema,
    description="The operation that an earlier request with this key started; without the scope `read`, only its id"
    " and status.",
    headers={"Location": "Location", "Idempotent-Replayed": "Idempotent-Replayed"},
)
@blueprint.response(202, OperationSchema, description="The new operation.", headers={"Location": "Location"})
@needs("operate")
def start_operation(sent: dict[str, Any], headers: dict[str, Any]) -> tuple[Row, int, dict[str, str]]:
    """Start changing the matching runs that exist now, the newest first.

    A worker that serves the queue `maintenance` carries out the operation in batches.  If it dies, another continues.
    """
    must_be_allowed_to_change_many(sent["filter"])
    requested = requested_of(sent)
    with transaction() as connection:
        queue.limit_searches(connection, requested.criteria, flask.g.caller.key_id)
        started = operations.start(connection, requested, operator(), headers["idempotency_key"])
    location = {"Location": f"/v1/operations/{started.operation['id']}"}
    if started.replayed:
        return shown(started.operation, PartialOperationSchema), 200, {**location, "Idempotent-Replayed": "true"}
    return started.operation, 202, location


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(OperationsQuery, location="query")
@blueprint.response(200, OperationListSchema)
@needs("read")
def list_operations(query: dict[str, Any]) -> dict[str, Any]:
    """List operations, the newest first."""
    with transaction() as connection:
        page = operations.list_operations(connection, **query)
    return {"items": page.rows, "next": page.next}


@blueprint.get("/<int:operation_id>")
@blueprint.response(200, OperationSchema)
@needs("read")
def show_operation(operation_id: int) -> Row:
    """Show an operation: its status, and how many runs it has changed so far."""
    with transaction() as connection:
        return operations.get_operation(connection, operation_id)


@blueprint.get("/<int:operation_id>/refusals")
@blueprint.arguments(RefusalsQuery, location="query")
@blueprint.response(200, RefusalListSchema)
@needs("read")
def list_operation_refusals(query: dict[str, Any], operation_id: int) -> dict[str, Any]:
    """List the runs that an operation refused to change, with the reason for each."""
    with transaction() as connection:
        page = operations.refusals_page(connection, operation_id, **query)
    return {"items": page.rows, "next": page.next}


@blueprint.post("/<int:operation_id>/stop")
@blueprint.response(200, PartialOperationSchema)
@needs("operate")
def stop_operation(operation_id: int) -> Row:
    """Stop an operation before its next batch.  Runs that it has already changed stay changed."""
    return _steered(operations.stop, operation_id)


@blueprint.post("/<int:operation_id>/continue")
@blueprint.response(200, PartialOperationSchema)
@needs("operate")
def continue_operation(operation_id: int) -> Row:
    """Continue an operation that is waiting after its canary, or that was stopped."""
    return _steered(operations.continue_operation, operation_id)


def _steered(event: Callable[[Connection, int, Operator], Row], operation_id: int) -> Row:
    with transaction() as connection:
        must_be_allowed_to_steer_operation(connection, operation_id)
        operation = event(connection, operation_id, operator())
    return shown(operation, PartialOperationSchema)
