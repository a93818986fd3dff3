"""Permission checks beyond a route's scope, which depend on the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import flask
from werkzeug.exceptions import Forbidden

from rowcall import definitions, effects
from rowcall.access.caller import UNLIMITED, Limits
from rowcall.base.database import Connection, Row
from rowcall.base.errors import (
    ApiKeyInvalid,
    DefinitionNotFound,
    EffectNotFound,
    JobTypeUnknown,
    OperationNotFound,
    RowcallError,
    RunInvalid,
    RunNotFound,
)
from rowcall.job_types import catalogue
from rowcall.queue import BatchRun, get_run, has_queue, operations
from rowcall_api.http.auth import KeyLimited, KeyRefused, ScopeMissing
from rowcall_api.schemas.answers import AnswerSchema

# A caller could guess these values bit by bit by filtering on them.
TELLING = {"payload", "key", "error_type", "created_by"}


def must_be_allowed_to_enqueue(
    connection: Connection, job_type: str, queue: str | None = None, priority: int | None = None
) -> None:
    """Refuse a run that this key may not enqueue, whether directly, as a clone, by a definition or by an app's route.

    Only operators may create queues, because each queue adds work to the claim and to /metrics.
    """
    declared = catalogue()[job_type]
    _must_have(declared.scope, f"which a run of {job_type} needs", "job_type")
    _must_be_within(job_type, queue or declared.queue)
    if (priority or 0) < 0:
        _must_have("operate", "which a priority below zero needs", "priority")
    if queue is None or may("operate") or queue in catalogue().queues:
        return
    if not has_queue(connection, queue):
        raise RunInvalid(
            {
                "queue": f"queue {queue!r} does not exist: use the queue of a job type or one that an operator created;"
                f" `rowcall queues resume {queue}` creates it"
            }
        )


def must_be_allowed_to_enqueue_all(connection: Connection, runs: Sequence[BatchRun]) -> None:
    """Refuse a batch if this key may not enqueue one of its runs; unknown types are left to enqueue_batch."""
    asked: dict[tuple[str, str | None, int], int] = {}
    for place, run in enumerate(runs):
        asked.setdefault((run.job_type, run.queue, run.priority), place)
    wrong = {}
    for (job_type, queue, priority), place in asked.items():
        try:
            must_be_allowed_to_enqueue(connection, job_type, queue, priority)
        except JobTypeUnknown:
            continue
        except RunInvalid as error:
            wrong[place] = error.fields
        except KeyRefused as error:
            error.place = ("runs", place, error.field)
            raise
    if wrong:
        raise RunInvalid({"runs": wrong})


def must_be_allowed_to_change_definition(connection: Connection, name: str) -> None:
    """Refuse to change a definition of a type that this key may not enqueue, since that creates or prevents runs.

    A definition that does not exist is left to the function that would change it.
    """
    with suppress(DefinitionNotFound):
        _must_be_allowed_to_change(definitions.get_definition(connection, name))


def _must_be_allowed_to_change(definition: Row) -> None:
    job_type, declared = definition["job_type"], None
    with suppress(JobTypeUnknown):  # the code may no longer declare it
        declared = catalogue()[job_type]
    if declared is not None and declared.scope != "enqueue":
        _must_have(declared.scope, f"which definitions of {job_type} need")
    _must_be_within(job_type, definition["queue"] or (declared.queue if declared is not None else None))


def must_be_allowed_to_change_queue(name: str) -> None:
    """Refuse a queue outside this key's limits; a key that is limited to job types cannot change any queue."""
    _must_be_within(None, name)


def must_be_allowed_to_manage_keys(limits: Limits) -> None:
    """Refuse to manage a key that this key's limits do not cover, because its secret would grant more."""
    own = flask.g.caller.limits
    for names, asked in zip(own, limits, strict=True):
        if names is not None and (asked is None or not {*asked} <= {*names}):
            raise KeyLimited(own)


def must_not_outlive_this_key(expires_at: datetime | None) -> None:
    """Refuse to create a key that outlives this request's own, which could otherwise renew itself forever."""
    if latest := _outlived(expires_at):
        sentence = (
            f"the key of this request expires at {latest}, and a key that it creates cannot be valid for longer: set"
            " expires_at to this time or an earlier one"
        )
        raise ApiKeyInvalid("expires_at", sentence)


def must_be_allowed_to_rotate(expires_at: datetime | None) -> None:
    """Refuse a rotation whose new key, which expires at this time, is valid for longer than this request's own."""
    if latest := _outlived(expires_at):
        raise Forbidden(
            f"the key of this request expires at {latest}, and the new key would be valid for longer: rotate it with a"
            " key that does not expire earlier than the new one, or with `rowcall keys rotate`"
        )


def _outlived(expires_at: datetime | None) -> str | None:
    own: datetime | None = flask.g.caller.expires_at
    return own.isoformat() if own is not None and (expires_at is None or expires_at > own) else None


def must_be_allowed_to_steer(connection: Connection, run_id: int) -> None:
    """Refuse a run whose job type or queue is outside this key's limits."""
    if flask.g.caller.limits != UNLIMITED:
        with _missing_refused(RunNotFound):
            run = get_run(connection, run_id)
        _must_be_within(run["job_type"], run["queue"])


def must_be_allowed_to_resolve(connection: Connection, kind: str, effect_id: int) -> None:
    """Refuse an effect of a run that this key may not change; a pruned run has no known job type."""
    if flask.g.caller.limits != UNLIMITED:
        with _missing_refused(EffectNotFound):
            effect = effects.lock_effect(connection, kind, effect_id)
        try:
            must_be_allowed_to_steer(connection, effect["run_id"])
        except RunNotFound:
            _must_be_within(None, None)


@contextmanager
def _missing_refused(missing: type[RowcallError]) -> Iterator[None]:
    """Treat a missing row like one beyond the key's limits, unless the key can read."""
    try:
        yield
    except missing:
        if not may("read"):
            _must_be_within(None, None)
        raise


def must_be_allowed_to_change_many(criteria: dict[str, Any]) -> None:
    """Refuse a filter beyond the limits of this key, or one with which it could guess what it may not read."""
    _must_be_within(criteria.get("job_type"), criteria.get("queue"))
    for name in sorted(TELLING & criteria.keys()):
        _must_have("read", f"which a filter by {name} needs")


def must_be_allowed_to_keep_views() -> None:
    """Do not let a key that cannot see all lists of runs, or has limits, change the views that all operators share."""
    _must_have("read", "which saving and removing views needs")
    _must_be_within(None, None)


def may_keep_views() -> bool:
    """Return whether this key may save and remove views."""
    return may("operate") and _allows(must_be_allowed_to_keep_views)


def may_change_many(criteria: dict[str, Any]) -> bool:
    """Return whether this key may change all runs that match a filter."""
    return _allows(must_be_allowed_to_change_many, criteria)


def may_change_queue(name: str) -> bool:
    """Return whether a queue is within this key's limits."""
    return _allows(must_be_allowed_to_change_queue, name)


def may_change_definition(definition: Row) -> bool:
    """Return whether this key may pause and resume a definition."""
    return _allows(_must_be_allowed_to_change, definition)


def may_run_definition(connection: Connection, definition: Row) -> bool:
    """Return whether this key may enqueue a run of a definition."""
    asked = definition["job_type"], definition["queue"], definition["priority"]
    try:
        return _allows(must_be_allowed_to_enqueue, connection, *asked)
    except (JobTypeUnknown, RunInvalid):
        return False


def may_resolve(run: Row | None) -> bool:
    """Return whether this key may resolve the effects of a run; a limited key may not if the run is gone."""
    return flask.g.caller.limits == UNLIMITED or (run is not None and may_steer(run))


def may_steer(run: Row) -> bool:
    """Return whether the job type and the queue of a run are within this key's limits."""
    return _allows(_must_be_within, run["job_type"], run["queue"])


def may_clone(connection: Connection, run: Row) -> bool:
    """Return whether this key may enqueue a copy of a run."""
    try:
        return may_steer(run) and _allows(must_be_allowed_to_enqueue, connection, run["job_type"], run["queue"])
    except (JobTypeUnknown, RunInvalid):
        return False


def _allows(check: Callable[..., None], *asked: Any) -> bool:
    """Return whether a check refuses nothing."""
    try:
        check(*asked)
    except KeyRefused:
        return False
    return True


def must_be_allowed_to_steer_operation(connection: Connection, operation_id: int) -> None:
    """Refuse an operation whose filter is beyond the limits of this key."""
    if flask.g.caller.limits != UNLIMITED:
        with _missing_refused(OperationNotFound):
            criteria = operations.get_operation(connection, operation_id)["filter"]
        _must_be_within(criteria.get("job_type"), criteria.get("queue"))


def shown(row: Row, schema: type[AnswerSchema]) -> Row:
    """Return the fields of a row that this key may see: all with the scope `read`, otherwise those in `least`."""
    return row if may("read") else {name: row[name] for name in schema.least}


def may(scope: str) -> bool:
    """Return whether the caller's key has this scope, or `admin`."""
    return bool(flask.g.caller.scopes & {scope, "admin"})


def _must_have(scope: str, why: str, field: str = "") -> None:
    if not may(scope):
        raise ScopeMissing(scope, why, field)


def _must_be_within(job_type: str | None, queue: str | None) -> None:
    limits = flask.g.caller.limits
    for field, names, asked in (("job_type", limits.job_types, job_type), ("queue", limits.queues, queue)):
        if names is not None and asked not in names:
            raise KeyLimited(limits, field)
