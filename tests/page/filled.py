"""A database in which something of everything has happened, the most of it bad: what an operator opens the page for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rowcall import definitions, queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, fetch_one, fetch_value
from rowcall.job_types import catalogue
from rowcall.queue.series.histogram import BUCKETS
from rowcall.status import Status

STACK = """Traceback (most recent call last):
  File "shop/charging.py", line 42, in charge
    answer = gateway.charge(invoice.key, invoice.amount)
  File "shop/gateways/payments.py", line 88, in charge
    raise PaymentRefused(answer.reason)
shop.errors.PaymentRefused: the card has expired
"""

# Type and message of each error.
REFUSED = ("PaymentRefused", "the card has expired")
BROKEN = ("HTTPError", "HTTP 500")
SLOW = ("TimeoutError", "the provider did not answer within 10 s")

Say = Callable[[str], str]


@dataclass(frozen=True)
class Filled:
    """The ids of what was inserted."""

    dead: int
    failing: int
    running: int
    waiting: int
    succeeded: int
    definition: str
    paused_definition: str
    effect: tuple[str, int]
    operation: int
    queue: str = "mail"

    @property
    def screens(self) -> dict[str, str]:
        """Return the path of every screen after /admin, by its name in docs/images."""
        kind, effect = self.effect
        return {
            "overview": "",
            "runs": "/runs?status=dead&status=failed",
            "run": f"/runs/{self.dead}",
            "run-retrying": f"/runs/{self.failing}",
            "run-running": f"/runs/{self.running}",
            "run-waiting": f"/runs/{self.waiting}",
            "run-succeeded": f"/runs/{self.succeeded}",
            "run-clone": f"/runs/{self.dead}/clone",
            "run-reschedule": f"/runs/{self.waiting}/reschedule",
            "definitions": "/definitions",
            "definition": f"/definitions/{self.definition}",
            "definition-paused": f"/definitions/{self.paused_definition}",
            "effects": "/effects",
            "effect": f"/effects/{kind}/{effect}",
            "failures": "/failures",
            "failure-attempts": "/failures/attempts?job_type=charge_invoice&error_type=PaymentRefused&hours=24",
            "workers": "/workers",
            "queues": "/queues",
            "queue": f"/queues/{self.queue}",
            "operations": "/operations",
            "operation": f"/operations/{self.operation}",
            "operation-preview": "/operations/new/retry?status=dead",
            "audit": "/audit",
            "keys": "/keys",
            "not-found": "/nowhere",
        }


def fill(connection: Connection, say: Say = str) -> Filled:
    """Insert everything; `say` may change each text that an app, its users or its providers write."""
    rows = Rows(connection, fetch_value(connection, "SELECT date_trunc('second', now())"), say)
    rows.workers()
    rows.counts()
    definition, paused = rows.definitions()
    dead, failing = rows.dead(), rows.failing()
    found = Filled(
        dead=dead,
        failing=failing,
        running=rows.running(),
        waiting=rows.waiting(),
        succeeded=rows.succeeded(),
        definition=definition,
        paused_definition=paused,
        effect=("payments", rows.effects(dead)),
        operation=rows.operation(dead),
    )
    operator = Operator(say("anna"), "request-1", reason=say("the provider is down"))
    queue.pause_queue(connection, found.queue, operator)
    queue.limit_queue(connection, "reports", 2, operator)
    api_keys.create_key(connection, "mobile app", ["enqueue", "read"], operator)
    return found


class Rows:
    """Inserts rows, dated before `now`."""

    def __init__(self, connection: Connection, now: datetime, say: Say) -> None:
        self._connection, self._now, self._say = connection, now, say

    def before(self, **ago: float) -> datetime:
        """Return a time before now."""
        return self._now - timedelta(**ago)

    def insert(self, table: str, **values: Any) -> Row:
        """Insert a row; a dict becomes JSON."""
        plain = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in values.items()}
        names = ", ".join(plain)
        sql = f"INSERT INTO rowcall.{table} ({names}) VALUES ({', '.join(f'%({name})s' for name in plain)})"
        row = fetch_one(self._connection, f"{sql} RETURNING *", plain)
        assert row is not None
        return row

    def run(self, status: Status, job_type: str, payload: dict[str, Any], **columns: Any) -> int:
        """Insert a run."""
        if status in {Status.SUCCEEDED, Status.DEAD, Status.CANCELLED}:
            columns.setdefault("finished_at", self.before(minutes=4))
        if status in {Status.FAILED, Status.DEAD}:
            columns.setdefault("failed_at", self.before(minutes=4))
        columns.setdefault("created_at", self.before(minutes=16))
        columns.setdefault("run_at", columns["created_at"])
        row = self.insert("job_runs", status=status.value, job_type=job_type, payload=payload, **columns)
        run_id: int = row["id"]
        return run_id

    def attempt(self, run_id: int, number: int, outcome: str, ended: datetime, error: tuple[str, str]) -> None:
        """Insert an attempt that did not succeed."""
        ids = {"run_id": run_id, "lease_no": number, "attempt": number, "worker": self._say("worker-a1:4321")}
        told = {"error_type": self._say(error[0]), "error": self._say(error[1]), "stack": self._say(STACK)}
        dates = {"started_at": ended - timedelta(seconds=3), "ended_at": ended}
        self.insert("job_attempts", outcome=outcome, **ids, **told, **dates)

    def workers(self) -> None:
        """Insert a worker that works, one that has stopped, and a new version's first start."""
        shared = {
            "version": "2.4.0",
            "job_types": sorted(catalogue()),
            "concurrency": 8,
            "hostname": self._say("web-1"),
        }
        self.insert("workers", id=self._say("worker-a1:4321"), pid=4321, started_at=self.before(hours=5), **shared)
        stopped = {"started_at": self.before(hours=6), "stopped_at": self.before(hours=5)}
        self.insert("workers", id=self._say("worker-a0:977"), pid=977, **stopped, **shared)
        self.insert("worker_versions", version="2.4.0", first_seen_at=self.before(minutes=31))

    def counts(self) -> None:
        """Count an hour of ordinary work, in which one type begins to fail after a deploy."""
        for minute in range(1, 58):
            shared = {"minute": self.before(minutes=minute).replace(second=0), "worker": "w"}
            zeros = dict.fromkeys(("cancelled", "snoozed", "released", "dead"), 0)
            good, bad = 30 + (minute * 7) % 13, 6 if minute < 30 else 0
            waiting, running = [0] * BUCKETS, [0] * BUCKETS
            waiting[3 + minute % 2], waiting[8] = good, 3
            running[5 + minute % 3], running[9] = good, 4
            ends = {"succeeded": good, "failed": bad, "waiting": waiting, "running": running}
            self.insert("run_counts", job_type="charge_invoice", **shared, **ends, **zeros)

    def definitions(self) -> tuple[str, str]:
        """Insert two definitions; one is paused, and the other has a history."""
        operator = Operator(self._say("anna"))
        for name, schedule in (("nightly-report", "17 3 * * *"), ("reminders", "0 9 * * 1-5")):
            raw = {"job_type": "cleanup_nightly", "schedule": schedule, "time_zone": "Europe/Berlin"}
            content = definitions.checked(name, {**raw, "payload": {"day": "2026-03-29"}}, catalogue())
            definitions.put(self._connection, name, content, catalogue(), "file", operator)
        definitions.pause(self._connection, "reminders", catalogue(), operator)
        definition_id = definitions.get_definition(self._connection, "nightly-report")["id"]
        for day in range(1, 30):
            nominal = self.before(days=day).replace(hour=2, minute=17)
            shared = {"definition_id": definition_id, "nominal_at": nominal, "revision": 1}
            if day in {3, 11}:
                outcome, reason = ("skipped", "paused") if day == 3 else ("missed", "no worker ticked")
                self.insert("schedule_occurrences", outcome=outcome, reason=reason, **shared)
            else:
                run = {"definition_id": definition_id, "scheduled_for": nominal, "finished_at": nominal, "attempts": 1}
                run_id = self.run(Status.SUCCEEDED, "cleanup_nightly", {"day": str(nominal.date())}, **run)
                self.insert("schedule_occurrences", outcome="enqueued", run_id=run_id, **shared)
        return "nightly-report", "reminders"

    def dead(self) -> int:
        """Insert runs that died, and return the one with a payload, a log and effects."""
        for number in range(12):
            event = {"event_id": f"e-{number}"}
            other = self.run(Status.DEAD, "deliver_webhook", event, **self._ended(2, 2, BROKEN))
            self.attempt(other, 1, "fail", self.before(hours=number, minutes=9), BROKEN)
            self.attempt(other, 2, "give up", self.before(hours=number, minutes=4), BROKEN)
        payload = {"invoice_id": 4711, "note": self._say("gift for Ada"), self._say("key"): [1, 2.5, None, True]}
        known = {
            "natural_key": self._say("invoice_charge:4711"),
            "idempotency_key": self._say("order-4711"),
            "created_by": self._say("api:checkout"),
            "last_stack": self._say(STACK),
        }
        run_id = self.run(Status.DEAD, "charge_invoice", payload, **self._ended(2, 2, REFUSED), **known)
        self.attempt(run_id, 1, "fail", self.before(minutes=9), REFUSED)
        self.attempt(run_id, 2, "give up", self.before(minutes=4), REFUSED)
        for line in range(1, 8):
            level = ("debug", "info", "warning", "error")[line % 4]
            text = self._say(f"asked the provider for invoice 4711, try {line}")
            where = {"run_id": run_id, "line_no": line, "lease_no": 1, "lease_line_no": line}
            self.insert("run_logs", level=level, text=text, logged_at=self.before(minutes=9), **where)
        return run_id

    def failing(self) -> int:
        """Insert runs that failed and retry, and return the first."""
        run_ids = []
        for number in range(3):
            ended = self._ended(number + 1, 10, SLOW)
            later = {"run_at": self._now + timedelta(minutes=5 + number), "queue": "mail"}
            run_ids.append(self.run(Status.FAILED, "send_invoice_email", {"invoice_id": number}, **ended, **later))
            for attempt in range(1, number + 2):
                self.attempt(run_ids[-1], attempt, "fail", self.before(minutes=40 - 10 * attempt), SLOW)
        return run_ids[0]

    def running(self) -> int:
        """Insert a run that is running, with progress."""
        lease = {
            "locked_by": self._say("worker-a1:4321"),
            "locked_until": self._now + timedelta(hours=1),
            "lease_no": 1,
        }
        dates = {"started_at": self.before(seconds=70), "run_at": self.before(seconds=71)}
        progress = {"share": 0.4, "note": self._say("400 of 1000 rows")}
        payload = {"date": "2026-03-29"}
        return self.run(Status.RUNNING, "build_sales_report", payload, progress=progress, attempts=1, **lease, **dates)

    def waiting(self) -> int:
        """Insert runs that are late, because their queue is paused."""
        late = {"queue": "mail", "run_at": self.before(minutes=14), "created_at": self.before(minutes=14)}
        first, *_ = [
            self.run(Status.QUEUED, "send_invoice_email", {"invoice_id": number}, **late) for number in range(4)
        ]
        return first

    def succeeded(self) -> int:
        """Insert a run that succeeded, with a result."""
        dates = {"started_at": self.before(minutes=8), "finished_at": self.before(minutes=7), "attempts": 1}
        result = {"path": self._say("reports/2026-03-28.pdf"), "rows": 1204}
        return self.run(Status.SUCCEEDED, "build_sales_report", {"date": "2026-03-28"}, result=result, **dates)

    def effects(self, run_id: int) -> int:
        """Insert an email that was sent, and a charge whose outcome is unknown."""
        shared = {"run_id": run_id, "lease_no": 1, "content_hash": "x"}
        mail = {"idempotency_key": self._say("mail:4711"), "recipient": self._say("ada@example.com")}
        known = {"subject": self._say("Your invoice"), "provider_reference": self._say("<m-1@mail.example.com>")}
        self.insert("sent_emails", state="applied", applied_at=self.before(minutes=9), **mail, **known, **shared)
        charge = {"idempotency_key": self._say("charge:4711"), "invoice_id": 4711, "amount_minor": 1999}
        row = self.insert(
            "payments", state="unknown", currency="EUR", refusal=self._say("no answer"), **charge, **shared
        )
        effect_id: int = row["id"]
        return effect_id

    def operation(self, run_id: int) -> int:
        """Insert an operation that waits after its first run, and one that is finished, with a refusal."""
        shared = {"action": "retry", "counted_all": True, "request_fingerprint": "x", "key_owner": "app"}
        by = {"requested_by": self._say("anna"), "reason": self._say("the provider is back")}
        ended = {"status": "finished", "matched": 9, "changed": 8, "refused": 1, "finished_at": self.before(hours=2)}
        before = self.insert("operations", filter={"job_type": "charge_invoice"}, **ended, **by, **shared)
        self.insert("operation_refusals", operation_id=before["id"], run_id=run_id, reason=self._say("it is running"))
        chosen = {"status": ["dead"], "error_type": self._say("HTTPError")}
        waits = {"status": "waiting", "matched": 12, "changed": 1, "canary": True, "canary_run_id": run_id}
        operation_id: int = self.insert("operations", filter=chosen, **waits, **by, **shared)["id"]
        return operation_id

    def _ended(self, attempts: int, most: int, error: tuple[str, str]) -> dict[str, Any]:
        numbers = {
            "attempts": attempts,
            "max_attempts": most,
            "lease_no": attempts,
            "started_at": self.before(minutes=5),
        }
        return {**numbers, "error_type": self._say(error[0]), "last_error": self._say(error[1])}
