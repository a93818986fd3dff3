"""Examples of responses: one real answer of each operation, with its times, secrets and cursors replaced.

An operation without an entry in REQUESTS is asked with PARTS and no body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall_api.app import create_app

JSON = "application/json"
METHODS = ("get", "post", "put", "patch", "delete")

# The rows of ROWS.
PARTS = {
    "run_id": 1,
    "name": "nightly",
    "kind": "sent_emails",
    "effect_id": 1,
    "file_id": 1,
    "key_id": 2,
    "operation_id": 1,
}

ROWS = """
INSERT INTO rowcall.job_runs (job_type, payload, status, attempts, max_attempts, lease_no, error_type, last_error,
    failed_at, finished_at, created_by)
VALUES ('noop', '{"user_id": 42}', 'dead', 3, 3, 3, 'SmtpDown', 'the mail server refused the connection',
    now(), now(), 'app');
INSERT INTO rowcall.job_runs (job_type, payload, status, attempts, lease_no, result, finished_at, created_by)
VALUES ('noop', '{"user_id": 43}', 'succeeded', 1, 1, '{"greeted": 43}', now(), 'app');
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error)
VALUES (1, 3, 3, 'give up', 'web-1:4711:6f2c', now(), 'SmtpDown', 'the mail server refused the connection');
INSERT INTO rowcall.run_logs (run_id, line_no, lease_no, lease_line_no, logged_at, level, text)
VALUES (1, 1, 3, 1, now(), 'info', 'sending to user 42');
INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)
VALUES ('welcome:42', 1, 3, '', 'unknown');
INSERT INTO rowcall.generated_files (type, date, key, run_id, lease_no, content_hash, state, applied_at)
VALUES ('sales_report', '2090-03-24', 'csv', 2, 1, '', 'applied', now());
INSERT INTO rowcall.workers (id, hostname, pid, version, job_types, concurrency)
VALUES ('web-1:4711:6f2c', 'web-1', 4711, '1.0', '{noop}', 8);
UPDATE rowcall.schedule_ticks SET ticked_at = now(), worker = 'web-1:4711:6f2c';
INSERT INTO rowcall.job_definitions (name, job_type, schedule) VALUES ('weekly', 'noop', '@weekly');
INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, revision, run_id)
VALUES (1, '2090-03-26T00:00:00Z', 'enqueued', 1, 2);
INSERT INTO rowcall.job_runs (id, job_type, queue, status, attempts, lease_no, started_at, locked_by, locked_until)
OVERRIDING SYSTEM VALUE
VALUES (17, 'noop', 'mail', 'running', 1, 1, now(), 'celery mail shop.tasks.send', now() + interval '1 minute'),
    (18, 'noop', 'mail', 'running', 1, 1, now(), 'consumer gpu-1:815:6f2c1d', now() + interval '1 minute');
"""

NIGHTLY = {"job_type": "noop", "schedule": "17 3 * * *", "time_zone": "Europe/Berlin", "payload": {"hello": "world"}}

# A time that is not now, for requests whose answers follow from it.
THEN = "2090-03-25T00:00:00Z"

NEAR = timedelta(days=400)


@dataclass(frozen=True)
class Ask:
    """What to send to an operation, besides PARTS."""

    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, object] = field(default_factory=dict)


# Operation -> its request, in this order, so that each finds what it shows or changes.
REQUESTS = {
    "putDefinition": Ask(NIGHTLY),
    "runDefinitionNow": Ask(),
    "previewDefinition": Ask(query={"from": THEN, "count": "2"}),
    "listRuns": Ask(query={"status": "dead"}),
    "listOccurrences": Ask(parts={"name": "weekly"}),
    "enqueueRun": Ask({"job_type": "noop", "payload": {"hello": "world"}, "run_at": THEN}),
    "enqueueRuns": Ask({"runs": [{"job_type": "noop", "payload": {"user_id": 1}, "run_at": THEN}]}),
    "explainRun": Ask(parts={"run_id": 4}),
    "runNow": Ask(parts={"run_id": 4}),
    "rescheduleRun": Ask({"run_at": THEN}, parts={"run_id": 5}),
    "cancelRun": Ask(parts={"run_id": 5}),
    "previewOperation": Ask({"action": "retry", "filter": {"status": ["dead"]}}),
    "startOperation": Ask({"action": "cancel", "filter": {"job_type": "noop"}, "reason": "a test"}),
    "stopOperation": Ask(),
    "continueOperation": Ask(),
    "listFailures": Ask(),
    "getSeries": Ask(query={"from": THEN, "to": "2090-03-25T02:00:00Z", "step": "1h"}),
    "resolveEffect": Ask({"happened": True, "reference": "msg-17"}),
    "limitQueue": Ask({"max_running": 2}, parts={"name": "mail"}),
    "pauseQueue": Ask(parts={"name": "mail"}),
    "resumeQueue": Ask(parts={"name": "mail"}),
    "getQueue": Ask(parts={"name": "mail"}),
    "listAudit": Ask(query={"subject": "run"}),
    "createKey": Ask({"name": "billing", "scopes": ["enqueue", "read"], "job_types": ["noop"]}),
    "rotateKey": Ask({"grace_seconds": 3600}),
    "revokeKey": Ask(parts={"key_id": 3}),
}


def page(url: str) -> str:
    """Return examples.json: the name of an operation -> the status of its success -> the body."""
    with database.transaction(url) as connection:
        database.fetch_all(connection, ROWS)
        key = api_keys.create_key(connection, "docs", ["admin"], Operator("cli:docs"))
    client = create_app(url).test_client()
    # Each request has the same id, which the audit log shows.
    headers = {"Authorization": f"Bearer {key}", "X-Request-Id": "4f1c2a"}
    described = client.get("/openapi.json").get_json()
    found: dict[str, dict[str, Any]] = {}
    for name, (method, path) in in_order(described).items():
        ask = REQUESTS.get(name, Ask())
        target = path.format(**{**PARTS, **ask.parts})
        answer = client.open(target, method=method, json=ask.body, query_string=ask.query, headers=headers)
        assert answer.status_code < 300, f"{name} has no example: add its request to tests/reference ({answer.text})"
        found[name] = {str(answer.status_code): steady(answer.get_json(), datetime.now(UTC))}
    lines = (f"  {json.dumps(name)}: {json.dumps(found[name], ensure_ascii=False)}" for name in sorted(found))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def in_order(described: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return name -> method and path of the operations that answer with a body, those of REQUESTS first."""
    known = {
        operation["operationId"]: (method, path)
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
        if method in METHODS and any(JSON in answer.get("content", ()) for answer in successes(operation))
    }
    # What is shown comes before what changes it.
    rest = sorted(known.keys() - REQUESTS, key=lambda name: (known[name][0] != "get", name))
    return {name: known[name] for name in [*REQUESTS, *rest]}


def successes(operation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the descriptions of an operation's successes."""
    return [answer for status, answer in operation["responses"].items() if status.startswith("2")]


def steady(value: Any, now: datetime, name: str = "") -> Any:
    """Return a part of an answer with what differs each time replaced."""
    if isinstance(value, dict):
        return {inner: steady(one, now, inner) for inner, one in value.items()}
    if isinstance(value, list):
        return [steady(one, now) for one in value]
    if name in {"prefix", "replaced_by"}:
        return "1a2b3c4d"
    if isinstance(value, float) and name.endswith("age_seconds"):
        return 1.5
    return _steady_text(value, now) if isinstance(value, str) else value


def _steady_text(text: str, now: datetime) -> str:
    if re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", text):
        return "2030-01-01T09:00:00+00:00" if abs(datetime.fromisoformat(text) - now) < NEAR else text
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00", "2030-01-01 09:00:00+00:00", text)
    text = re.sub(r"\bin \d+ days( \d+ (h|min|s)\b)*", "in 21945 days", text)
    text = re.sub(r"<sent_emails\.(\d+)\.\d+@", r"<sent_emails.\1.20300101090000000000@", text)
    text = re.sub(r"\brc_\w+", "rc_1a2b3c4d_0123456789abcdefghijklmnopqrstuvwxyz", text)
    return re.sub(r"^(api:.*) \(\w{8}\)$", r"\1 (1a2b3c4d)", text)
