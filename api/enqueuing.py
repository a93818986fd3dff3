"""Runs asked for by HTTP: enqueued once under their key, and answered alike by every route that makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flask

from api.database import transaction
from shared.database import Connection, Row
from shared.logs import LogEvent, log
from shared.queue import enqueue, get_run

Answer = tuple[Row, int, dict[str, str]]


def enqueue_and_answer(
    job_type: str,
    payload: Mapping[str, Any],
    key: str | None,
    must_exist: Callable[[Connection], object] | None = None,
    **options: Any,
) -> Answer:
    """The run that this request has now, committed: 202 where it is new, 200 where an earlier request had made it.

    `must_exist` looks in the same transaction for what a new run is about, and refuses it by raising.  A replay is
    answered without that look: what was accepted stays accepted.
    """
    with transaction() as connection:
        outcome = enqueue(connection, job_type, payload, key=key, created_by=flask.g.caller.name, **options)
        if must_exist and not outcome.replayed:
            must_exist(connection)
        run = get_run(connection, outcome.run_id)
    log().info(LogEvent.RUN_ENQUEUED, run_id=run["id"], job_type=run["job_type"], replayed=outcome.replayed)
    answer = {"Location": f"/v1/runs/{outcome.run_id}"}
    if outcome.replayed:
        return run, 200, {**answer, "Idempotent-Replayed": "true"}
    return run, 202, answer
