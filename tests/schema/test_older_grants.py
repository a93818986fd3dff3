"""Roles whose grants are older than the schema: what lacks is said, with the remedy, by the API and by doctor."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator

import pytest

from rowcall import queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.queue.retention.prune import BEGINNING, Retention, prune_page, read_page
from rowcall.status import FINAL, Status
from rowcall_api.app import create_app
from rowcall_migrations.migrate import migrate
from tests.schema.catalogue import asked, objects
from tests.schema.conftest import DUTIES, Granted
from tests.support.invoices import charging
from tests.support.logged import logged
from tests.support.processes import rowcall
from tests.support.psql import psql
from tests.support.roles import role
from tests.support.rows import run_in

REMEDY = (
    "ask the owner of the tables to run the script that `rowcall migrate --grants` prints, and to run it again after"
    " each migration"
)


@pytest.fixture
def older(granted: Granted) -> Granted:
    """Take from the roles what they have only since revision 0002."""
    names = granted.names
    asked(granted.url, f"REVOKE ALL ON rowcall.run_logs FROM {names['worker']}, {names['api']}")
    asked(granted.url, f"REVOKE DELETE ON rowcall.queues FROM {names['api']}")
    return granted


def test_the_api_says_which_right_its_role_lacks(older: Granted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWCALL_RATE_LIMIT", "0")
    with database.transaction(older.url) as connection:
        key = api_keys.create_key(connection, "older", ["read", "operate"], Operator("tests"))
        run_id = run_in(connection, Status.SUCCEEDED)["id"]
        database.fetch_all(connection, "INSERT INTO rowcall.queues (name, max_running) VALUES ('mail', 2)")
    with role(older.url, "http", member_of=older.names["api"]) as server:
        app = create_app(server.url)
        for method, path, table in (
            ("GET", f"/v1/runs/{run_id}/log", "run_logs"),
            ("DELETE", "/v1/queues/mail/settings", "queues"),
        ):
            with logged() as lines:
                answer = app.test_client().open(path, method=method, headers={"Authorization": f"Bearer {key}"})
            told = json.loads(answer.text)
            assert (answer.status_code, told["type"]) == (503, "urn:rowcall:problem:database-rights-missing")
            assert told["detail"] == (
                f"the database refuses the role of the API: permission denied for table {table}; {REMEDY}"
            )
            assert "exception" not in lines[-1]
        app.extensions["database"].dispose()


def test_doctor_says_what_each_role_lacks(older: Granted, environment: dict[str, str]) -> None:
    with role(older.url, "reports") as reports:
        asked(older.url, f"GRANT USAGE ON SCHEMA rowcall TO {reports.name}")
        asked(older.url, f"GRANT SELECT ON rowcall.job_runs TO {reports.name}")
        good, message = examined(environment, older.url)
    of_role = {"api": "DELETE on queues", "worker": "DELETE, INSERT, SELECT on run_logs"}
    lacking = [f"{older.names[duty]} lacks {rights}" for duty, rights in of_role.items()]
    lacking.insert(1, f"{older.names['api']} lacks SELECT on run_logs")
    assert (good, message) == (False, f"{'; '.join(lacking)}: {REMEDY}")
    psql(older.url, older.script)
    assert examined(environment, older.url) == (
        True,
        "every role with rights on the tables has all the rights that its duty needs",
    )


def test_doctor_says_which_columns_the_enqueuing_role_lacks(granted: Granted, environment: dict[str, str]) -> None:
    name = granted.names["enqueue"]
    asked(granted.url, f"REVOKE INSERT (key_owner) ON rowcall.job_runs FROM {name}")
    good, message = examined(environment, granted.url)
    assert (good, message) == (False, f"{name} lacks INSERT on job_runs: {REMEDY}")


def examined(environment: dict[str, str], url: str) -> tuple[bool, str]:
    """Return doctor's finding."""
    told = rowcall({**environment, "DATABASE_URL": url, "ROWCALL_API_PORT": "0"}, "doctor", "--json").stdout
    [found] = [one for one in json.loads(told)["findings"] if one["subject"] == "grants"]
    return found["good"], found["message"]


@pytest.fixture
def granted_at_0001(empty_url: str) -> Iterator[Granted]:
    """Yield a database of revision 0001, whose roles have the rights that the script gave then."""
    # Only explicit rights count, as where nobody may call a function by default.
    asked(empty_url, "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    migrate(empty_url, 3, "0001")
    made = Granted(empty_url, {duty: f"{duty}_{uuid.uuid4().hex[:8]}" for duty in DUTIES})
    known = objects(empty_url, "rowcall")
    lines = made.script.replace(", rowcall.free_keys(text, text[]), rowcall.insert_run", "").splitlines(keepends=True)
    of_tables = [line for line in lines if "archive_month" not in line]
    psql(empty_url, "".join(line for line in of_tables if {*re.findall(r" ON rowcall\.(\w+) TO ", line)} <= known))
    yield made
    names = ", ".join(made.names.values())
    asked(empty_url, f"DROP OWNED BY {names}; DROP ROLE {names}")


@pytest.mark.parametrize("revisions", [["0002"], ["0002", "0001", "0002"]])
@pytest.mark.parametrize("duty", DUTIES)
def test_after_a_migration_each_role_can_enqueue_with_a_key_or_without_as_before(
    granted_at_0001: Granted, duty: str, revisions: list[str]
) -> None:
    url, job_types = granted_at_0001.url, (charging("charge"), charging("live", "live"))
    for revision in revisions:
        migrate(url, 3, revision)
    with role(url, "older", member_of=granted_at_0001.names[duty]) as by, database.transaction(by.url) as connection:
        assert not queue.enqueue(connection, "noop", {}).replayed
        for job_type in job_types:
            first = queue.enqueue(connection, job_type, {"invoice_id": 1}, key=f"s {job_type.name}")
            again = queue.enqueue(connection, job_type, {"invoice_id": 1}, key=f"t {job_type.name}")
            assert again == queue.Enqueued(first.run_id, replayed=True)
        connection.commit()


def test_after_a_migration_the_older_role_of_the_api_lists_runs_of_the_archive_too(granted_at_0001: Granted) -> None:
    url = granted_at_0001.url
    migrate(url, 3, "0002")
    with database.transaction(url) as connection:
        run_in(connection, Status.DEAD, **dict.fromkeys(("created_at", "finished_at"), "'2020-05-10 12:00+00'"))
        page = read_page(connection, Retention(dict.fromkeys(FINAL, 7), {}), BEGINNING, 10, bare=False)
        assert page is not None
        prune_page(connection, page, to_table=True)
        connection.commit()
    with role(url, "older", member_of=granted_at_0001.names["api"]) as by, database.transaction(by.url) as connection:
        assert [run["archived"] for run in queue.list_runs(connection, queue.Filter()).runs] == [True]


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize("right", ["INSERT", "INSERT (job_type)", "SELECT"])
def test_the_migration_grants_request_keys_to_every_role_that_can_insert_runs(
    empty_url: str, right: str, everybody: bool
) -> None:
    migrate(empty_url, 3, "0001")
    asked(empty_url, "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    name = "public" if everybody else f'O\'Hara "web" {uuid.uuid4().hex[:8]}'
    quoted = "PUBLIC" if everybody else '"' + name.replace('"', '""') + '"'
    if not everybody:
        asked(empty_url, f"CREATE ROLE {quoted}")
    asked(empty_url, f"GRANT {right} ON rowcall.job_runs TO {quoted}")
    migrate(empty_url, 3, "0002")
    [has] = asked(
        empty_url,
        """
        SELECT has_table_privilege(%(name)s, 'rowcall.request_keys', 'SELECT') AS reads,
            has_table_privilege(%(name)s, 'rowcall.request_keys', 'INSERT') AS inserts,
            has_function_privilege(%(name)s, 'rowcall.free_keys(text, text[])', 'EXECUTE') AS frees,
            has_function_privilege(%(name)s, 'rowcall.insert_run'::regproc, 'EXECUTE') AS inserts_one
        """,
        name=name,
    )
    assert set(has.values()) == {right != "SELECT"}
    if not everybody:
        asked(empty_url, f"DROP OWNED BY {quoted}; DROP ROLE {quoted}")
