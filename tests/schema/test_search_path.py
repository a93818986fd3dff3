"""With a hostile schema in front of pg_catalog in the search_path, everything still works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
import pytest

from rowcall import queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database.pool import open_pool
from rowcall.base.errors import KeyConflict, ResultTimeout
from rowcall_api.app import create_app
from rowcall_migrations.migrate import migrate
from tests.schema.catalogue import asked, catalogue
from tests.schema.hostile import lay_traps, safe
from tests.support.processes import APPS, ROOT, rowcall, running, wait_until


@pytest.fixture
def hostile_url(empty_url: str) -> Iterator[str]:
    """Yield a database that was migrated after the traps were laid."""
    lay_traps(empty_url)
    migrate(empty_url, 3)
    yield empty_url
    asked(safe(empty_url), "ALTER ROLE CURRENT_USER RESET search_path")


@pytest.fixture
def ours(hostile_url: str, environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of Rowcall's processes on it."""
    return {
        **environment,
        "DATABASE_URL": hostile_url,
        "ROWCALL_APP": "shop",
        "PYTHONPATH": f"{APPS}:{ROOT}",
        "ROWCALL_POLL": "0.05",
        "ROWCALL_HEARTBEAT": "0.1",
    }


def test_the_traps_work(hostile_url: str) -> None:
    for statement in ("SELECT now()", "SELECT 1::bigint = 1::bigint", "SELECT pg_notify('a', 'b')"):
        with database.transaction(hostile_url) as connection:
            with pytest.raises(psycopg2.errors.RaiseException, match="stepped on"):
                database.fetch_all(connection, statement)
            connection.rollback()


def test_migrations_make_the_same_tables_and_take_them_back(hostile_url: str, fresh_url: str) -> None:
    assert catalogue(safe(hostile_url)) == catalogue(safe(fresh_url))
    migrate(hostile_url, 3, "base")
    assert catalogue(safe(hostile_url)) == set()


def test_enqueuing_in_a_callers_transaction(hostile_url: str) -> None:
    engine = open_pool(hostile_url, pool_size=1)
    with database.transaction(hostile_url) as connection:
        first = queue.enqueue(connection, "noop", {"user_id": 1}, key="once")
        queue.enqueue_many(connection, "noop", [{"user_id": 2}, {"user_id": 3}], keys=["once more", None])
        [path] = database.fetch_all(connection, "SHOW search_path")
    assert path["search_path"] == "hostile, pg_catalog, public"
    with engine.begin() as pooled:
        assert queue.enqueue(pooled, "noop", {"user_id": 1}, key="once") == queue.Enqueued(first.run_id, replayed=True)
    with engine.begin() as pooled, pytest.raises(KeyConflict):
        queue.enqueue(pooled, "noop", {"user_id": 2}, key="once")
    engine.dispose()
    assert len(asked(safe(hostile_url), "SELECT id FROM rowcall.job_runs")) == 3
    reading = database.connect(hostile_url)
    with pytest.raises(ResultTimeout):
        first.result(reading, timeout=0)
    reading.close()


def test_a_worker_claims_finishes_beats_sweeps_and_ticks(
    ours: dict[str, str], hostile_url: str, tmp_path: Path
) -> None:
    looks = safe(hostile_url)
    asked(
        looks,
        "INSERT INTO rowcall.job_definitions (name, job_type, schedule, next_run_at)"
        # Once a year, so that no second nominal time is due before the first tick.
        " VALUES ('yearly', 'noop', '0 0 1 1 *', now())",
    )
    asked(
        looks,
        "INSERT INTO rowcall.job_runs (job_type, status, lease_no, attempts, max_attempts, locked_by, locked_until)"
        " VALUES ('noop', 'running', 1, 1, 3, 'gone', now() - interval '1 minute')",
    )
    doors = {"order_id": 1, "ends": "badly at first", "doors": str(tmp_path)}
    for payload, job_type in ((doors, "shop_wait"), ({"order_id": 2, "ends": "for good"}, "shop_pack")):
        with database.transaction(looks) as connection:
            written = "INSERT INTO rowcall.job_runs (job_type, payload, max_attempts) VALUES (%(type)s, %(payload)s, 3)"
            database.fetch_all(connection, written, {"type": job_type, "payload": json.dumps(payload)})
    statuses = "SELECT job_type, status FROM rowcall.job_runs WHERE job_type <> 'shop_wait' ORDER BY id"
    beats = "SELECT id FROM rowcall.workers WHERE heartbeat_at > started_at"
    with running(ours, "worker", "run"):
        wait_until(lambda: asked(looks, beats), "the worker sends heartbeats")
        (tmp_path / "1 open").touch()
        (tmp_path / "2 open").touch()
        waits = "SELECT status FROM rowcall.job_runs WHERE job_type = 'shop_wait'"
        wait_until(lambda: asked(looks, waits)[0]["status"] in ("failed", "succeeded"), "the first attempt has failed")
        done = {("noop", "succeeded"), ("shop_pack", "dead")}
        wait_until(lambda: {tuple(row.values()) for row in asked(looks, statuses)} == done, "all runs are done")
        counts = "SELECT worker FROM rowcall.run_counts WHERE dead > 0"
        wait_until(lambda: asked(looks, counts), "the worker writes its counts")
    outcomes = {row["outcome"] for row in asked(looks, "SELECT outcome FROM rowcall.job_attempts")}
    assert outcomes == {"fail", "give up", "expire"}
    occurrences = asked(looks, "SELECT DISTINCT outcome FROM rowcall.schedule_occurrences")
    assert occurrences == [{"outcome": "enqueued"}]


def test_effects_are_performed_and_recorded(ours: dict[str, str], hostile_url: str, tmp_path: Path) -> None:
    example = {**ours, "ROWCALL_APP": "rowcall_example", "ROWCALL_WEBHOOK_ALLOW_LOOPBACK": "on"}
    payload = {"url": "http://127.0.0.1:9/nobody", "event_id": "1", "body": {}}
    asked_for = rowcall(example, "enqueue", "deliver_webhook", json.dumps(payload))
    assert asked_for.returncode == 0, asked_for.stderr
    worked = rowcall(example, "worker", "once")
    assert worked.returncode == 0, worked.stderr
    [effect] = asked(safe(hostile_url), "SELECT event_id, state FROM rowcall.delivered_webhooks")
    assert effect == {"event_id": "1", "state": "refused"}
    [attempt] = asked(safe(hostile_url), "SELECT error FROM rowcall.job_attempts")
    assert "stepped on" not in attempt["error"]


def test_the_api_answers(hostile_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWCALL_RATE_LIMIT", "0")
    with database.internal_transaction(hostile_url) as connection:
        key = api_keys.create_key(connection, "smoke", api_keys.SCOPES, Operator("tests"))
    app = create_app(hostile_url)
    client = app.test_client()
    headers = {"Authorization": f"Bearer {key}"}
    made = client.post("/v1/runs", json={"job_type": "noop"}, headers={**headers, "Idempotency-Key": "a"})
    again = client.post("/v1/runs", json={"job_type": "noop"}, headers={**headers, "Idempotency-Key": "a"})
    assert (made.status_code, again.status_code) == (202, 200)
    run = made.headers["Location"]
    put = client.put("/v1/definitions/nightly", json={"job_type": "noop", "schedule": "@daily"}, headers=headers)
    assert put.status_code < 300, put.get_data(as_text=True)
    for path in (
        *("/v1/runs", run, f"{run}/attempts", f"{run}/explain", f"{run}/effects", "/v1/definitions"),
        *("/v1/definitions/nightly/occurrences", "/v1/effects", "/v1/stats", "/readyz", "/metrics"),
    ):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 200, (path, answer.get_data(as_text=True))
    assert client.post(f"{run}/cancel", headers=headers).status_code == 200
    app.extensions["database"].dispose()


def test_the_command_line_works(ours: dict[str, str]) -> None:
    for command in (
        ["enqueue", "noop", "{}"],
        ["worker", "once"],
        ["runs", "list"],
        ["runs", "show", "1"],
        ["runs", "explain", "1"],
        ["runs", "clone", "1"],
        ["runs", "cancel", "2"],
        ["runs", "retry", "2"],
        ["definitions", "list"],
        ["queues", "list"],
        ["queues", "pause", "mail"],
        ["effects", "list"],
        ["keys", "create", "somebody", "--scope", "read"],
        ["keys", "list"],
        ["prune", "--yes"],
        ["migrate"],
        ["doctor"],
    ):
        done = rowcall(ours, *command)
        assert "stepped on" not in done.stdout + done.stderr, command
        assert "Traceback" not in done.stderr, (command, done.stderr)
        assert done.returncode == 0 or command == ["doctor"], (command, done.stderr)


def test_a_database_that_writes_intervals_in_another_style_is_migrated_and_ticked(
    empty_url: str, environment: dict[str, str]
) -> None:
    name = urlsplit(empty_url).path[1:]
    asked(empty_url, f"ALTER DATABASE {name} SET intervalstyle = iso_8601")
    environment |= {"DATABASE_URL": empty_url}
    for command in (("migrate",), ("migrate",), ("definitions", "list"), ("worker", "once")):
        done = rowcall(environment, *command)
        assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
