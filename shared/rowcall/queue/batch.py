"""Batch: enqueue runs of any types together, all or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, all_or_nothing
from rowcall.base.errors import JobTypeUnknown, KeyTaken, RunInvalid
from rowcall.base.timestamps import in_utc
from rowcall.job_types import JobType, catalogue
from rowcall.queue.enqueue import Prepared, check_options, columns_of, enqueue_prepared, prepared
from rowcall.queue.faults import faults_of
from rowcall.queue.operate import audit_enqueued
from rowcall.queue.views.results import Enqueued

BATCH_MOST = 1000

# Runs of one type that share these are inserted by one statement.
OPTIONS = ("run_at", "queue", "priority", "max_attempts")


@dataclass(frozen=True)
class BatchRun:
    """A requested run of a batch; the options are those of enqueue."""

    job_type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    run_at: datetime | None = None
    queue: str | None = None
    priority: int = 0
    max_attempts: int | None = None


class Checked(NamedTuple):
    """A checked request, with its place in the batch."""

    place: int
    declared: JobType
    payload: Mapping[str, Any]
    options: Mapping[str, Any]
    prepared: Prepared

    @property
    def group(self) -> str:
        """Return what the runs of one statement share, as a string that sorts."""
        return repr((self.declared.name, self.options))


def enqueue_batch(connection: Connection, operator: Operator, runs: Sequence[BatchRun]) -> list[Enqueued]:
    """Enqueue these runs in the caller's transaction, all or none; the outcomes are in the same order.

    RunInvalid names every invalid field of every run; KeyTaken has the `places` of the runs that conflict.
    """
    checked = _checked(runs)
    outcomes: dict[int, Enqueued] = {}
    # All batches insert their groups, and the keys of a group, in the same order, so two of them cannot deadlock.
    with all_or_nothing(connection):
        for _, same in groupby(sorted(checked, key=lambda one: one.group), key=lambda one: one.group):
            group = sorted(same, key=lambda one: one.place)
            try:
                new = _enqueued(connection, operator, group)
            except KeyTaken as error:
                _point_to(error, group, outcomes)
                raise
            outcomes |= zip((one.place for one in group), new, strict=True)
        for one in checked:
            audit_enqueued(connection, operator, one.declared, one.payload, outcomes[one.place])
    return [outcomes[place] for place in range(len(runs))]


def _checked(runs: Sequence[BatchRun]) -> list[Checked]:
    """Check all requests, so that one refusal names everything that is wrong."""
    checked: list[Checked] = []
    wrong: dict[int, Mapping[str, object]] = {}
    for place, run in enumerate(runs):
        try:
            declared = catalogue()[run.job_type]
            options = {name: getattr(run, name) for name in OPTIONS}
            check_options(declared, options)
            options["run_at"] = in_utc(run.run_at)
            one = prepared(declared, run.payload, options, run.idempotency_key)
            checked.append(Checked(place, declared, run.payload, options, one))
        except JobTypeUnknown as error:
            wrong[place] = {**faults_of(vars(run)), "job_type": error.fault}
        except RunInvalid as error:
            wrong[place] = {**faults_of(vars(run)), **error.fields}
    if wrong:
        raise RunInvalid({"runs": wrong})
    return checked


def _enqueued(connection: Connection, operator: Operator, group: Sequence[Checked]) -> list[Enqueued]:
    """Enqueue the runs of one type with the same options."""
    first = group[0]
    columns = columns_of(first.declared, first.options, operator.key_owner, operator.who)
    return enqueue_prepared(connection, [one.prepared for one in group], columns)


def _point_to(error: KeyTaken, group: Sequence[Checked], done: Mapping[int, Enqueued]) -> None:
    """Name the runs of the batch that conflict: one with an older run, or two with each other."""
    place = group[error.position].place
    new = (place for place, outcome in done.items() if outcome == Enqueued(error.run_id, replayed=False))
    other = next(new, None) if error.other is None else group[error.other].place
    found = [place] if other is None else sorted((place, other))
    error.places = [("runs", one) for one in found]
    if other is not None:
        error.between(*(f"/runs/{one}" for one in found))
