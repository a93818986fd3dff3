"""A value for each parameter of a statement, so that it runs in psql."""

from __future__ import annotations

from datetime import UTC, datetime

from rowcall.definitions import Content
from rowcall.definitions.check import as_sent

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC).isoformat()
LATER = datetime(2027, 1, 5, 12, tzinfo=UTC).isoformat()
HASH = "9f86d081884c7d659a2feaa0c55ad015"
INFINITE = "infinity"

# A definition's own fields have the values that they have by default; what is null there has one here.
DEFINITION = {name: str(value) for name, value in as_sent(Content("noop")).items() if value is not None}

SAMPLES = {
    **DEFINITION,
    "after_created_at": "-infinity",
    "after_id": "0",
    "after_lease_no": "0",
    "after_priority": "-32768",
    "after_queue": "",
    "after_run_at": "-infinity",
    "ahead": "100",
    "amount_minor": "1250",
    "anew": "false",
    "at": INFINITE,
    "bare": "false",
    "batch": "100",
    "concurrency": "4",
    "content_hash": HASH,
    "created_after": NOON,
    "created_before": LATER,
    "created_by": "cli:me",
    "currency": "EUR",
    "date": "2026-01-05",
    "days": '{"succeeded": 30, "dead": 90, "cancelled": 30}',
    "declared": '{"mail": 2}',
    "definition": "nightly",
    "definition_id": "1",
    "delay": "30",
    "due": "1",
    "earlier_than": INFINITE,
    "error": "the mail server is away",
    "error_type": "GatewayError",
    "event_id": "invoice-1-paid",
    "fingerprint": HASH,
    "fingerprints": HASH,
    "finished_after": NOON,
    "finished_before": LATER,
    "forensics": '{"signal": "SIGKILL"}',
    "from": "-infinity",
    "horizon": "86400",
    "hostname": "worker.example",
    "id": "1",
    "idempotency_key": "welcome:1",
    "include": "payload",
    "invoice_id": "1",
    "job_types": "noop",
    "keep_days": "90",
    "key": "welcome:1",
    "key_id": "1",
    "keys": "welcome:1",
    "known": "mail",
    "lease_no": "1",
    "lease_keys": '{"1/1": 120}',
    "lane_ids": "0",
    "lane_priorities": "0",
    "lane_queues": "default",
    "lane_run_ats": "-infinity",
    "leases": '{"noop": 120}',
    "alone": "false",
    "limit": "50",
    "sleep": "60",
    "transaction": "1000",
    "managed_by": "api",
    "max_attempts": "5",
    "max_lateness": "6 hours",
    "max_running": "2",
    "message_id": "<1@shop.example>",
    "milliseconds": "5000",
    "most": "20000",
    "name": "nightly",
    "names": "mail",
    "next_at": LATER,
    "next_run_at": LATER,
    "nominal_at": NOON,
    "outcome": "enqueued",
    "page_bytes": "1048576",
    "path": "reports/1.pdf",
    "pause": "15",
    "payload": '{"user_id": 1}',
    "payloads": '{"user_id": 1}',
    "permanent": "false",
    "pid": "4711",
    "queue": "default",
    "queues": "default",
    "quick_types": "noop",
    "reason": "in time",
    "recipient": "ada@shop.example",
    "reference": "ch_1",
    "refusal": "declined",
    "request_id": "request-1",
    "response_status": "200",
    "revision": "1",
    "run_after": NOON,
    "run_at": NOON,
    "run_before": LATER,
    "run_id": "1",
    "run_ids": "1",
    "saved": '{"rows": 7}',
    "schedule": "17 3 * * *",
    "versions": "1/1767614400.000000",
    "seconds": "120",
    "sha256": HASH,
    "shortest": "30",
    "silence": "150",
    "size_bytes": "1024",
    "stack": "Traceback (most recent call last): ...",
    "state": "refused",
    "states": "applied",
    "status": "queued",
    "subject": "Welcome",
    "tried": "1",
    "resting_ids": "2",
    "resting_revisions": "1",
    "type": "sales",
    "types": '{"noop": {"succeeded": 7}}',
    "until": LATER,
    "url": "https://shop.example/hook",
    "user_id": "1",
    "version": "0.2.0",
    "week_start_date": "2026-01-05",
    "who": "cli:me",
    "worker": "worker-1",
}


def sample(name: str, array: bool) -> str:
    """The value of a parameter as PostgreSQL writes it; `array` where the statement takes an array."""
    if name.startswith("behind_"):
        return "9223372036854775807"
    if name not in SAMPLES:
        raise KeyError(f"give the parameter {name} a value in tests/queries/samples.py")
    value = SAMPLES[name]
    return '{"' + value.replace('"', '\\"') + '"}' if array else value
