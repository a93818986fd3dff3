"""`rowcall migrate --grants`: each role can do its work, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from rowcall import queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database.pool import open_pool
from rowcall.base.errors import KeyConflict, NaturalKeyConflict
from rowcall.queue.run_log import LINES_MOST
from rowcall.schema.tables import metadata
from rowcall.status import Status
from rowcall_api.app import create_app
from rowcall_example.tables import create_tables
from tests.schema.catalogue import asked
from tests.schema.conftest import Granted
from tests.support.invoices import charging
from tests.support.processes import rowcall
from tests.support.psql import psql
from tests.support.roles import Role, role
from tests.support.rows import run_in
from tests.support.run_log import insert_lines, lease_of, lines


@pytest.fixture
def enqueuer(granted: Granted) -> Iterator[Role]:
    """Yield a role that may enqueue."""
    with role(granted.url, "web", member_of=granted.names["enqueue"]) as made:
        yield made


@pytest.fixture
def worker(granted: Granted) -> Iterator[Role]:
    """Yield a role that may work."""
    with role(granted.url, "jobs", member_of=granted.names["worker"]) as made:
        yield made


@pytest.fixture
def server(granted: Granted) -> Iterator[Role]:
    """Yield a role that may serve the API."""
    with role(granted.url, "http", member_of=granted.names["api"]) as made:
        yield made


def test_the_script_can_be_run_again_and_takes_away_what_was_added(granted: Granted, enqueuer: Role) -> None:
    asked(granted.url, f"GRANT DELETE ON rowcall.job_runs TO {granted.names['enqueue']}")
    psql(granted.url, granted.script)
    refused(enqueuer, "DELETE FROM rowcall.job_runs")


def test_the_script_takes_back_what_default_privileges_gave_to_everybody(granted: Granted) -> None:
    asked(granted.url, "GRANT USAGE ON SCHEMA rowcall TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA rowcall TO PUBLIC")
    psql(granted.url, granted.script)
    with role(granted.url, "stranger") as stranger:
        refused(stranger, "SELECT FROM rowcall.api_keys")
        refused(stranger, "DELETE FROM rowcall.job_definitions")


def test_enqueuing_works_in_the_callers_own_transaction_replays_included(enqueuer: Role) -> None:
    with database.transaction(enqueuer.url) as connection:
        first = queue.enqueue(connection, "noop", {"user_id": 1}, key="once")
        queue.enqueue_many(connection, "noop", [{"user_id": 2}, {"user_id": 3}])
    engine = open_pool(enqueuer.url, pool_size=1)
    with engine.begin() as pooled:
        assert queue.enqueue(pooled, "noop", {"user_id": 1}, key="once") == queue.Enqueued(first.run_id, replayed=True)
    with engine.begin() as pooled, pytest.raises(KeyConflict):
        queue.enqueue(pooled, "noop", {"user_id": 2}, key="once")
    engine.dispose()


@pytest.mark.parametrize("duty", ["enqueuer", "worker", "server"])
def test_a_request_that_gets_the_run_of_its_fact_keeps_its_key_with_the_rights_of_each_role(
    request: pytest.FixtureRequest, duty: str
) -> None:
    by: Role = request.getfixturevalue(duty)
    live = charging("live", "live")
    with database.transaction(by.url) as connection:
        first = queue.enqueue(connection, live, {"invoice_id": 1}, key="s")
        with pytest.raises(NaturalKeyConflict):
            queue.enqueue(connection, live, {"invoice_id": 1, "note": "other"}, key="t")
        assert queue.enqueue(connection, live, {"invoice_id": 1}, key="t").replayed
        queue.enqueue_many(connection, live, [{"invoice_id": 1}, {"invoice_id": 2}], keys=["u", None])
    asked(by.owners_url, "UPDATE rowcall.job_runs SET status = 'succeeded', finished_at = now()")
    with database.transaction(by.url) as connection:
        again = queue.enqueue(connection, live, {"invoice_id": 1}, key="t")
    assert again == queue.Enqueued(first.run_id, replayed=True)


def test_enqueuing_by_command_works(enqueuer: Role, environment: dict[str, str]) -> None:
    done = rowcall({**environment, "DATABASE_URL": enqueuer.url}, "enqueue", "noop", "{}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("table", sorted(table.name for table in metadata.tables.values()))
def test_the_enqueuing_role_can_do_nothing_else(enqueuer: Role, table: str) -> None:
    for statement in (
        f"SELECT * FROM rowcall.{table}",
        f"DELETE FROM rowcall.{table}",
        f"TRUNCATE rowcall.{table}",
        f"DROP TABLE rowcall.{table}",
    ):
        refused(enqueuer, statement)
    if table == "job_runs":
        refused(enqueuer, "SELECT payload FROM rowcall.job_runs")
        refused(enqueuer, "UPDATE rowcall.job_runs SET priority = 0")
        refused(enqueuer, "INSERT INTO rowcall.job_runs (job_type, attempts) VALUES ('noop', 3)")
    elif table == "request_keys":
        refused(enqueuer, "INSERT INTO rowcall.request_keys (created_at) VALUES (now())")
        refused(enqueuer, "UPDATE rowcall.request_keys SET run_id = 1")
    else:
        refused(enqueuer, f"INSERT INTO rowcall.{table} DEFAULT VALUES")


@pytest.mark.usefixtures("example_app")
def test_a_worker_works_ticks_performs_effects_and_prunes(
    worker: Role, environment: dict[str, str], tmp_path: Path
) -> None:
    with database.transaction(worker.owners_url) as connection:
        create_tables(connection)
    asked(worker.owners_url, f"GRANT USAGE ON SCHEMA example TO {worker.name}")
    asked(worker.owners_url, f"GRANT ALL ON ALL TABLES IN SCHEMA example TO {worker.name}")
    ours = {**environment, "DATABASE_URL": worker.url, "ROWCALL_FILES": str(tmp_path / "files")}
    with database.transaction(worker.owners_url) as connection:
        report = queue.enqueue(connection, "build_sales_report", {"date": "2026-03-02"}).run_id
        wrong = queue.enqueue(connection, "charge_invoice", {"invoice_id": 4711}).run_id
    asked(
        worker.owners_url,
        "INSERT INTO rowcall.job_definitions (name, job_type, schedule, next_run_at)"
        " VALUES ('minutely', 'noop', '* * * * *', now())",
    )
    worked = rowcall(ours, "worker", "once")
    assert worked.returncode == 0, worked.stderr
    statuses = "SELECT id, status FROM rowcall.job_runs WHERE id IN (%(report)s, %(wrong)s)"
    found = {row["id"]: row["status"] for row in asked(worker.owners_url, statuses, report=report, wrong=wrong)}
    assert found == {report: "succeeded", wrong: "dead"}
    assert asked(worker.owners_url, "SELECT state FROM rowcall.generated_files") != []
    assert asked(worker.owners_url, "SELECT outcome FROM rowcall.schedule_occurrences") == [{"outcome": "enqueued"}]
    asked(
        worker.owners_url,
        "UPDATE rowcall.job_runs SET created_at = created_at - interval '9 years',"
        " finished_at = finished_at - interval '9 years' WHERE finished_at IS NOT NULL",
    )
    pruned = rowcall(ours, "prune", "--yes", "--json")
    assert pruned.returncode == 0, pruned.stderr
    assert json.loads(pruned.stdout)["deleted"] > 0, pruned.stdout


def test_a_worker_archives_in_the_table_and_drops_months_and_the_api_reads_them(
    worker: Role, server: Role, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWCALL_RATE_LIMIT", "0")
    archived_by(worker, environment)
    with database.transaction(server.owners_url) as connection:
        key = api_keys.create_key(connection, "reader", ["read"], Operator("tests"))
    app = create_app(server.url)
    listed = app.test_client().get("/v1/runs", headers={"Authorization": f"Bearer {key}"})
    assert [(run["status"], run["archived"]) for run in json.loads(listed.text)["items"]] == [("dead", True)]
    app.extensions["database"].dispose()
    refused(server, "SELECT rowcall.drop_archive_month('2020-05-01', NULL)")
    refused(server, "SELECT rowcall.make_archive_month('2020-05-01')")
    refused(worker, "DELETE FROM rowcall.archived_runs")
    dropped = rowcall({**environment, "DATABASE_URL": worker.url}, "archive", "drop", "2020-05", "--yes")
    assert dropped.returncode == 0, dropped.stderr


def archived_by(worker: Role, environment: dict[str, str]) -> None:
    """Let this role prune a run into the archive table."""
    moment = dict.fromkeys(("created_at", "finished_at"), "'2020-05-10 12:00+00'")
    with database.transaction(worker.owners_url) as connection:
        run_in(connection, Status.DEAD, **moment)
        database.fetch_all(
            connection,
            "INSERT INTO rowcall.job_definitions (name, job_type, payload)"
            """ VALUES ('prune_runs', 'prune_runs', '{"archive": "table"}')""",
        )
    pruned = rowcall({**environment, "DATABASE_URL": worker.url}, "prune", "--yes", "--json")
    assert pruned.returncode == 0, pruned.stderr
    assert json.loads(pruned.stdout)["archived"] == 1


def test_a_worker_writes_what_handlers_log(worker: Role) -> None:
    with database.transaction(worker.url) as connection:
        run = run_in(connection, Status.RUNNING)
        insert_lines(connection, run["id"], range(1, LINES_MOST + 1))
        queue.write_log(connection, {lease_of(run): lines("new")})
        assert queue.left_out(connection, run["id"]) == 1
    refused(worker, "UPDATE rowcall.run_logs SET text = ''")


@pytest.mark.parametrize("duty", ["worker", "server"])
def test_operations_work_with_the_rights_of_a_worker_and_of_the_api(
    request: pytest.FixtureRequest, duty: str, environment: dict[str, str]
) -> None:
    by: Role = request.getfixturevalue(duty)
    fact = {"natural_key": "'fact'", "unique_mode": "'until_failed'"}
    with database.transaction(by.owners_url) as connection:
        for status in (Status.QUEUED, Status.DEAD):
            run_in(connection, status, **fact)
    ended = rowcall({**environment, "DATABASE_URL": by.url}, "runs", "retry", "--all")
    assert ended.stdout == "operation 1 is finished: 1 matched, 0 changed, 1 refused\n", ended.stderr


def test_a_worker_reads_no_api_keys(worker: Role) -> None:
    refused(worker, "SELECT * FROM rowcall.api_keys")


def test_the_api_serves_its_main_routes(server: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWCALL_RATE_LIMIT", "0")
    with database.transaction(server.owners_url) as connection:
        key = api_keys.create_key(connection, "smoke", api_keys.SCOPES, Operator("tests"))
        dead = queue.enqueue(connection, "noop", {"user_id": 1}).run_id
    asked(server.owners_url, "UPDATE rowcall.job_runs SET status = 'dead', finished_at = now(), failed_at = now()")
    app = create_app(server.url)
    client = app.test_client()

    def ask(method: str, path: str, **options: Any) -> int:
        headers = {"Authorization": f"Bearer {key}", **options.pop("headers", {})}
        answer = client.open(path, method=method, headers=headers, **options)
        assert answer.status_code < 400, (method, path, answer.get_data(as_text=True))
        return answer.status_code

    assert ask("POST", "/v1/runs", json={"job_type": "noop"}, headers={"Idempotency-Key": "a"}) == 202
    assert ask("POST", "/v1/runs", json={"job_type": "noop"}, headers={"Idempotency-Key": "a"}) == 200
    ask("GET", f"/v1/runs/{dead}/log")
    ask("POST", f"/v1/runs/{dead}/retry")
    ask("POST", f"/v1/runs/{dead}/cancel")
    ask("POST", f"/v1/runs/{dead}/clone")
    ask("POST", "/v1/operations", json={"action": "cancel", "all": True}, headers={"Idempotency-Key": "a"})
    ask("POST", "/v1/operations", json={"action": "cancel", "all": True}, headers={"Idempotency-Key": "a"})
    ask("POST", "/v1/operations/1/stop")
    ask("POST", "/v1/operations/1/continue")
    ask("GET", "/v1/operations/1/refusals")
    ask("PUT", "/v1/definitions/nightly", json={"job_type": "noop", "schedule": "@daily"})
    ask("POST", "/v1/definitions/nightly/pause")
    ask("DELETE", "/v1/definitions/nightly")
    ask("POST", "/v1/queues/mail/pause")
    ask("PUT", "/v1/queues/mail/limit", json={"max_running": 2})
    ask("DELETE", "/v1/queues/mail/settings")
    ask("POST", "/v1/keys", json={"name": "another", "scopes": ["read"]})
    ask("POST", "/v1/keys/2/rotate")
    ask("POST", "/v1/keys/2/revoke")
    for path in (
        *("/v1/runs", f"/v1/runs/{dead}", f"/v1/runs/{dead}/attempts", f"/v1/runs/{dead}/explain"),
        *("/v1/definitions", "/v1/effects", "/v1/queues", "/v1/workers", "/v1/job-types", "/v1/failures", "/v1/files"),
        *("/v1/series", "/v1/audit", "/v1/keys", "/v1/keys/me", "/v1/stats", "/readyz", "/metrics"),
        "/v1/workers/handed-over",
    ):
        ask("GET", path)
    app.extensions["database"].dispose()


def test_the_api_deletes_no_runs(server: Role) -> None:
    refused(server, "DELETE FROM rowcall.job_runs")


def test_erase_and_prune_say_whose_rights_they_need(
    worker: Role, server: Role, environment: dict[str, str], fresh_url: str
) -> None:
    [run] = asked(
        fresh_url,
        "INSERT INTO rowcall.job_runs (job_type, status, finished_at) VALUES ('noop', 'cancelled', now() - '9 years'::"
        "interval) RETURNING id",
    )
    for by, words, needed in (
        (worker, ["erase", str(run["id"])], "the owner of the tables"),
        (server, ["prune"], "the worker's role that `rowcall migrate --grants` creates, or of the owner of the tables"),
    ):
        ended = rowcall({**environment, "DATABASE_URL": by.url}, *words, "--yes")
        assert ended.returncode == 1
        assert ended.stderr.startswith("rowcall: the database refuses this role: permission denied for table ")
        assert ended.stderr.endswith(f"; this command needs the rights of {needed}\n")


def refused(by: Role, statement: str) -> None:
    """Assert that the database refuses a statement to this role."""
    with database.transaction(by.url) as connection:
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            database.fetch_all(connection, statement)
        connection.rollback()


def test_it_is_the_rights_that_refuse_and_not_the_statement(fresh_url: str) -> None:
    asked(fresh_url, "SELECT payload FROM rowcall.job_runs")
    asked(fresh_url, "UPDATE rowcall.job_runs SET priority = 0")
    asked(fresh_url, "DELETE FROM rowcall.job_runs")
