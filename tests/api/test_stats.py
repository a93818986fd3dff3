"""/v1/stats: what waits, runs and fails, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flask
import pytest
from openapi_schema_validator import OAS31Validator

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.effects import KINDS
from rowcall.job_types import catalogue
from rowcall.queue import pause_queue
from tests.api.conftest import Call, told
from tests.support.rows import live_runs


@pytest.fixture(scope="module")
def rows(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection to a database with a few problems."""
    connection = database.connect(module_url)
    connection.autocommit = True
    live_runs(connection, "mail")
    pause_queue(connection, "mail", Operator("a test"))
    fetch_all(
        connection,
        "INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)"
        " VALUES ('lost', 1, 1, '', 'unknown')",
    )
    fetch_all(
        connection,
        "INSERT INTO rowcall.workers (id, hostname, pid, version, job_types, concurrency)"
        " VALUES ('w', 'here', 1, '1', '{noop}', 1)",
    )
    fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '1 hour', worker = 'w'")
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_definitions (name, job_type, next_run_at)"
        " VALUES ('late', 'noop', now() - interval '1 hour')",
    )
    yield connection
    connection.close()


@pytest.fixture
def stats(call: Call, rows: PgConnection) -> dict[str, Any]:
    answer = call("GET", "/v1/stats", scope="read")
    assert answer.status_code == 200
    return told(answer)


def test_a_queue_says_what_waits_runs_and_failed_and_since_when(stats: dict[str, Any]) -> None:
    queues = {queue["name"]: queue for queue in stats["queues"]}
    mail = queues["mail"]
    assert {name: mail[name] for name in ("due", "queued", "running", "failed")} == {
        "due": 1,
        "queued": 1,
        "running": 1,
        "failed": 1,
    }
    assert mail["oldest_due_age_seconds"] >= 7200
    assert mail["paused_at"]
    assert set(queues) >= {kind.queue for kind in catalogue().values()}


def test_what_somebody_has_to_look_at_is_told(stats: dict[str, Any]) -> None:
    assert stats["effects_unknown"] == {kind: int(kind == "sent_emails") for kind in KINDS}
    assert stats["definitions"] == {"paused": 0, "overdue": 1}
    assert stats["workers_alive"] == 1
    assert (stats["tick"]["silent"], stats["tick"]["worker"]) == (True, "w")
    assert stats["tick"]["age_seconds"] >= 3600


def test_it_is_as_it_is_described(app: flask.Flask, stats: dict[str, Any]) -> None:
    described = told(app.test_client().get("/openapi.json"))
    schema = described["paths"]["/v1/stats"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    OAS31Validator({**schema, "components": described["components"]}).validate(stats)


@pytest.mark.parametrize(("scope", "status"), [("read", 200), ("admin", 200), ("enqueue", 403), ("operate", 403)])
def test_it_needs_the_scope_read(call: Call, rows: PgConnection, scope: str, status: int) -> None:
    assert call("GET", "/v1/stats", scope=scope).status_code == status
