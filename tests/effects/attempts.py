"""Attempts at an effect: under a lease, under the run's next one, and under one that has ended."""

from __future__ import annotations

from typing import Any

from rowcall import effects
from rowcall.base.database import PgConnection, fetch_all, fetch_one
from rowcall.base.errors import GatewayError
from rowcall.effects import KINDS, Decision, Effect, EffectKind
from rowcall.queue import Lease
from rowcall.status import Status
from tests.support.rows import WORKER, run_in

MAIL, PAYMENT, WEBHOOK = KINDS["sent_emails"], KINDS["payments"], KINDS["delivered_webhooks"]
SMS = EffectKind("sms", policy="at_most_once")
REFUND = EffectKind("refunds", policy="provider_key", horizon=60.0)
NUDGE = EffectKind("nudges", policy="at_least_once")
KEYS: dict[str, dict[str, Any]] = {
    "sent_emails": {"idempotency_key": "welcome:1"},
    "payments": {"idempotency_key": "invoice_charge:1"},
    "delivered_webhooks": {"event_id": "evt-1"},
    "generated_files": {"type": "sales_report", "date": "2026-03-29", "key": "csv"},
    **{kind.name: {"key": "7"} for kind in (SMS, REFUND, NUDGE)},
}
PERFORMED = [effects.kind_of(name) for name in KEYS]
CONTENT = {"recipient": "a@example.com", "subject": "Hello"}
HOUR = 3600.0


def lease_of(connection: PgConnection) -> Lease:
    run = run_in(connection, Status.RUNNING)
    return Lease(WORKER, run["id"], run["lease_no"])


def next_attempt(connection: PgConnection, lease: Lease) -> Lease:
    """Give the run its next lease, and return that."""
    fetch_all(connection, "UPDATE rowcall.job_runs SET lease_no = lease_no + 1 WHERE id = %(id)s", {"id": lease.run_id})
    return Lease(lease.worker, lease.run_id, lease.lease_no + 1)


def begun(connection: PgConnection, lease: Lease, kind: effects.Kind = MAIL, **more: Any) -> tuple[Decision, Effect]:
    return effects.begin(connection, lease, kind, KEYS[kind.name], CONTENT, **more)


def stored(connection: PgConnection, kind: effects.Kind = MAIL) -> dict[str, Any]:
    row = fetch_one(connection, f"SELECT * FROM rowcall.{kind.table.name}")
    assert row is not None
    return row


def failed(connection: PgConnection, lease: Lease, effect: Effect, error: GatewayError) -> bool:
    return effects.failed(connection, lease, effect, error, error.permanent)


STALE = ["another lease", "another worker", "not running"]


def stale(connection: PgConnection, lease: Lease, how: str) -> Lease:
    """Return a lease that was lost in this way."""
    if how == "another lease":
        next_attempt(connection, lease)
        return lease
    if how == "another worker":
        return Lease("worker-2", lease.run_id, lease.lease_no)
    fetch_all(
        connection,
        "UPDATE rowcall.job_runs SET status = 'failed', locked_by = NULL, locked_until = NULL WHERE id = %(id)s",
        {"id": lease.run_id},
    )
    return lease
