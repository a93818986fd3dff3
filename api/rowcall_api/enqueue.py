"""Enqueue runs over HTTP: once per key, with the same response from every route."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import sqlalchemy

from rowcall.base.database import Row
from rowcall.base.errors import RunInvalid
from rowcall.base.logs import LogEvent, log
from rowcall.queue import enqueue_as, faults_of, get_run
from rowcall_api.http.auth import operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import app_transaction, transaction
from rowcall_api.rights import must_be_allowed_to_enqueue, shown
from rowcall_api.schemas.runs import PartialRunSchema, RunSchema

Answer = tuple[Row, int, dict[str, str]]
View = TypeVar("View", bound=Callable[..., Any])


def answers_with_a_run(blueprint: BodyBlueprint, new: type[RunSchema] = RunSchema) -> Callable[[View], View]:
    """Document the responses of a view that returns an `Answer`; `new` is the schema of a new run."""

    def decorate(view: View) -> View:
        replayed: View = blueprint.alt_response(
            200,
            schema=PartialRunSchema,
            description="The run that has this key and content; without the scope `read`, only its id and status.",
            headers={"Location": "Location", "Idempotent-Replayed": "Idempotent-Replayed"},
        )(view)
        described: View = blueprint.response(
            202, new, description="The new run. It is committed.", headers={"Location": "Location"}
        )(replayed)
        return described

    return decorate


def enqueue_and_answer(
    job_type: str,
    payload: Mapping[str, Any],
    key: str | None,
    must_exist: Callable[[sqlalchemy.Connection], object] | None = None,
    **options: Any,
) -> Answer:
    """Enqueue a run, commit it and return the response: 202 if the run is new, 200 if an earlier request created it.

    `must_exist` runs in the same transaction and raises if the subject of the new run does not exist.  It is skipped
    for a replay, because the first request was accepted.
    """
    with app_transaction() if must_exist else transaction() as connection:
        must_be_allowed_to_enqueue(connection, job_type, options.get("queue"), options.get("priority"))
        try:
            outcome = enqueue_as(connection, operator(), job_type, payload, key=key, **options)
        except RunInvalid as error:
            everything = faults_of({"job_type": job_type, "payload": payload, **options})
            raise RunInvalid({**everything, **error.fields}) from None
        if must_exist and not outcome.replayed:
            assert isinstance(connection, sqlalchemy.Connection)  # that of app_transaction
            must_exist(connection)
        run = get_run(connection, outcome.run_id)
    return answer(run, outcome.replayed)


def answer(run: Row, replayed: bool, own: bool = True) -> Answer:
    """Return the response for a committed run; one that is replayed or not the caller's `own` may belong to others."""
    log().info(LogEvent.RUN_ENQUEUED, run_id=run["id"], job_type=run["job_type"], replayed=replayed)
    run = run if own and not replayed else shown(run, PartialRunSchema)
    location = {"Location": f"/v1/runs/{run['id']}"}
    return (run, 200, {**location, "Idempotent-Replayed": "true"}) if replayed else (run, 202, location)
