"""Job types about invoices, one for each time that a run holds its natural key."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from marshmallow import Schema, fields

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, fetch_all
from rowcall.job_types import Catalogue, JobType
from rowcall.queue import Enqueued, Failure, Lease, enqueue
from rowcall.status import Status

OPERATOR = Operator("a test")


class Invoice(Schema):
    """An invoice."""

    invoice_id = fields.Integer(required=True)
    note = fields.String(load_default="")


def charging(name: str, unique: str = "ever") -> JobType:
    return JobType(name, schema=Invoice, key=lambda payload: str(payload["invoice_id"]), unique=unique)


TYPES = [charging("charge"), charging("refund"), charging("until_failed", "until_failed"), charging("live", "live")]


def declare(monkeypatch: pytest.MonkeyPatch, *job_types: JobType) -> None:
    """Make these the app's job types."""
    module = ModuleType("job_types")
    vars(module).update({job_type.name: job_type for job_type in job_types})
    known = Catalogue(module)
    for room in ("batch", "clone", "enqueue"):
        monkeypatch.setattr(import_module(f"rowcall.queue.{room}"), "catalogue", lambda: known)


def charge(connection: PgConnection, invoice: int = 7, job_type: str = "charge", **options: Any) -> Enqueued:
    return enqueue(connection, job_type, {"invoice_id": invoice}, **options)


def end(connection: PgConnection, run_id: int, status: Status) -> None:
    """End the run as its worker, or an operator, does."""
    if status is Status.CANCELLED:
        queue.cancel_any(connection, run_id, OPERATOR)
        return
    locked = "UPDATE rowcall.job_runs SET status = 'running', lease_no = 1, attempts = 1, locked_by = 'worker-1',"
    fetch_all(connection, f"{locked} locked_until = now() + interval '1 hour' WHERE id = {run_id}")
    lease = Lease("worker-1", run_id, 1)
    if status is Status.SUCCEEDED:
        queue.succeed(connection, [queue.Done(lease, None)])
    else:
        queue.give_up(connection, lease, Failure("no", "ValueError"))
