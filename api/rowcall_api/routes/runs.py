"""/v1/runs: enqueue, list and show runs."""

from __future__ import annotations

from typing import Any

import flask
from werkzeug.http import parse_etags

from rowcall import queue
from rowcall.base.database import Row
from rowcall.effects import page_of_effects
from rowcall.queue import Filter, get_run
from rowcall.queue.views import cursors
from rowcall.queue.views.lists import LARGE
from rowcall.queue.views.pages import Order
from rowcall.status import FINAL, Status
from rowcall_api.enqueue import Answer, answers_with_a_run, enqueue_and_answer
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.http.waiting.awaited import wait_for_run
from rowcall_api.schemas.effects import RunEffectListSchema, RunEffectsQuery
from rowcall_api.schemas.filters import RunsQuery
from rowcall_api.schemas.runs import (
    AttemptListSchema,
    AttemptsQuery,
    EnqueueHeaders,
    EnqueueSchema,
    IfNoneMatchHeaders,
    LogQuery,
    LogSchema,
    RunListSchema,
    RunSchema,
    tagged,
)
from rowcall_api.schemas.waiting.runs import WaitQuery
from rowcall_api.sparse import chosen
from rowcall_api.standby.requests import standby_may_answer

blueprint = BodyBlueprint("runs", __name__, url_prefix="/v1/runs", description="Runs and their status.")


@blueprint.post("")
@blueprint.arguments(EnqueueSchema)
@blueprint.arguments(EnqueueHeaders, location="headers")
@answers_with_a_run(blueprint)
@needs("enqueue")
def enqueue_run(sent: dict[str, Any], headers: dict[str, Any]) -> Answer:
    """Enqueue a run.  The run is committed before the response is sent.

    Without the scope `operate`, the queue must belong to a job type or have been created by an operator, and the
    priority must not be negative.
    """
    return enqueue_and_answer(sent.pop("job_type"), sent.pop("payload"), headers["idempotency_key"], **sent)


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(RunsQuery, location="query")
@blueprint.response(200, RunListSchema)
@needs("read")
def list_runs(query: dict[str, Any]) -> dict[str, Any]:
    """List matching runs in the order of their creation, by default the newest first.

    Filters without an index (all but `created_after`, `created_before`, `status=failed,dead`, `error_type`,
    `definition` and `key`) scan at most 20,000 runs per page.  A key may run two payload searches at a time.
    """
    limit, cursor, order = (query.pop(name) for name in ("limit", "cursor", "order"))
    count, include = query.pop("count"), query.pop("include")
    include = [*include, *(chosen() & {*LARGE})]
    criteria = Filter(**query)
    with transaction() as connection:
        queue.limit_searches(connection, criteria, flask.g.caller.key_id)
        page = queue.list_runs(connection, criteria, limit, cursor, include=include, order=order)
        counted = {"count": queue.count_runs(connection, criteria)} if count else {}
    return {"items": page.runs, "next": page.next, **counted}


@blueprint.get("/<int:run_id>")
@blueprint.arguments(IfNoneMatchHeaders, location="headers")
@blueprint.arguments(WaitQuery, location="query")
@blueprint.response(200, RunSchema, headers={"ETag": "ETag"})
@blueprint.alt_response(304, description="The run has not changed since this ETag.", headers={"ETag": "ETag"})
@needs("read")
def show_run(
    headers: dict[str, Any], query: dict[str, Any], run_id: int
) -> tuple[Row | flask.Response, int, dict[str, str]]:
    """Show one run; with `wait`, first wait until it ends.

    With `wait` and `If-None-Match`, the response is also sent when the ETag changes.  The response for a running run is
    never 304, because its ETag does not cover its progress.
    """
    seen = parse_etags(headers["if_none_match"])

    def is_news(run: Row) -> bool:
        return run["status"] in FINAL or (bool(seen) and not seen.contains_weak(queue.version_of(run)))

    run = _run(run_id)
    if query["wait"] and not is_news(run) and wait_for_run(run_id, query["wait"], is_news):
        run = _run(run_id)
    if run["status"] != Status.RUNNING and seen.contains_weak(queue.version_of(run)):
        return flask.Response(), 304, tagged(run)
    return run, 200, tagged(run)


def _run(run_id: int) -> Row:
    with transaction() as connection:
        return get_run(connection, run_id)


@blueprint.get("/<int:run_id>/attempts")
@blueprint.arguments(AttemptsQuery, location="query")
@blueprint.response(200, AttemptListSchema)
@needs("read")
def list_run_attempts(query: dict[str, Any], run_id: int) -> dict[str, Any]:
    """List the unsuccessful attempts of a run."""
    order: Order = query["order"]
    scope = order.scope(f"attempts {run_id}")
    beyond = order.beginning if query["cursor"] is None else cursors.read(scope, query["cursor"])[0]
    with transaction() as connection:
        get_run(connection, run_id)
        items, more = queue.attempts_page(connection, run_id, beyond, query["limit"], order=order)
    return {"items": items, "next": cursors.written(scope, items[-1]["lease_no"], 0) if more else None}


@blueprint.get("/<int:run_id>/log")
@blueprint.arguments(LogQuery, location="query")
@blueprint.response(200, LogSchema)
@needs("read")
def list_run_log(query: dict[str, Any], run_id: int) -> dict[str, Any]:
    """List what the handler of a run logged, in all attempts.

    A worker writes new lines with its heartbeat, with the progress that the handler reports, and with the end of the
    attempt.  A page ends after about 1 MiB of JSON.
    """
    order: Order = query["order"]
    scope = order.scope(f"log {run_id}")
    beyond = order.beginning if query["cursor"] is None else cursors.read(scope, query["cursor"])[0]
    with transaction() as connection:
        get_run(connection, run_id)
        items, more = queue.log_page(connection, run_id, beyond, query["limit"], order=order)
        left_out = queue.left_out(connection, run_id)
    following = cursors.written(scope, items[-1]["line_no"], 0) if more else None
    return {"items": items, "left_out": left_out, "next": following}


@blueprint.get("/<int:run_id>/effects")
@blueprint.arguments(RunEffectsQuery, location="query")
@blueprint.response(200, RunEffectListSchema)
@needs("read")
def list_run_effects(query: dict[str, Any], run_id: int) -> dict[str, Any]:
    """List the effects that this run was the last to attempt."""
    with transaction() as connection:
        get_run(connection, run_id)
        page = page_of_effects(connection, run_id=run_id, **query)
    return {"items": page.effects, "next": page.next}
