"""Erasing: finished runs lose their content at once; nothing else changes."""

from __future__ import annotations

import json

import pytest

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.queue.retention.erase import erase, find_ids
from rowcall.status import FINAL, LIVE, Status
from tests.support.rows import row_of, run_in
from tests.support.run_log import insert_lines, texts

OPERATOR = Operator("cli:ada", "request-1")
PAYLOAD = json.dumps({"payload": {"user_id": 7}, "priority": 1})


def audited(connection: PgConnection, subject: str, subject_id: int, before: str, after: str) -> int:
    """Insert an audit row and return its id."""
    sql = """
    INSERT INTO rowcall.audit_log (who, action, subject, subject_id, before, after)
    VALUES ('cli:me', 'change', %(subject)s, %(subject_id)s, %(before)s::jsonb, %(after)s::jsonb) RETURNING id
    """
    [row] = fetch_all(connection, sql, {"subject": subject, "subject_id": subject_id, "before": before, "after": after})
    audit_id: int = row["id"]
    return audit_id


def audit_row(connection: PgConnection, audit_id: int) -> Row:
    [row] = fetch_all(connection, "SELECT before, after FROM rowcall.audit_log WHERE id = %(id)s", {"id": audit_id})
    return row


def attempt_of(connection: PgConnection, run: Row) -> None:
    sql = """
    INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker) VALUES (%(id)s, 1, 1, 'fail', 'w')
    """
    fetch_all(connection, sql, run)


def attempts(connection: PgConnection) -> list[int]:
    return [row["run_id"] for row in fetch_all(connection, "SELECT run_id FROM rowcall.job_attempts ORDER BY run_id")]


@pytest.mark.parametrize("status", FINAL)
def test_a_finished_run_keeps_only_what_prevents_a_second_one(connection: PgConnection, status: Status) -> None:
    run = run_in(connection, status, payload="""'{"user_id": 7}'""", natural_key="'welcome:7'", last_error="'Ada'")
    other = run_in(connection, status, payload="""'{"user_id": 8}'""")
    attempt_of(connection, run)
    attempt_of(connection, other)
    for one in (run, other):
        insert_lines(connection, one["id"], [1], "to Ada: ")
    assert erase(connection, [run["id"]], OPERATOR) == [run["id"]]
    row = row_of(connection, run["id"])
    assert (row["payload"], row["last_error"], row["status"], row["natural_key"]) == ({}, None, status, "welcome:7")
    assert row["pruned_at"] is not None
    assert row_of(connection, other["id"])["payload"] == {"user_id": 8}
    assert attempts(connection) == [other["id"]]
    assert (texts(connection, run["id"]), texts(connection, other["id"])) == ([], ["to Ada: 1"])


@pytest.mark.parametrize("status", LIVE)
def test_a_run_that_has_not_finished_is_found_but_not_erased(connection: PgConnection, status: Status) -> None:
    run = run_in(connection, status, payload="""'{"user_id": 7}'""")
    found = find_ids(connection, [run["id"]])
    assert (found.finished, found.unfinished) == ([], [run["id"]])
    assert erase(connection, [run["id"]], OPERATOR) == []
    assert row_of(connection, run["id"])["payload"] == {"user_id": 7}


def test_of_many_runs_only_those_that_are_named_are_found(connection: PgConnection) -> None:
    first, _, last = (run_in(connection, Status.SUCCEEDED)["id"] for _ in range(3))
    assert find_ids(connection, [last, first, 999_999]).finished == [first, last]


def test_the_audit_log_keeps_who_changed_the_run_but_no_payload(connection: PgConnection) -> None:
    run, other = (run_in(connection, Status.SUCCEEDED) for _ in range(2))
    of_run = audited(connection, "run", run["id"], PAYLOAD, PAYLOAD)
    untouched = [
        audited(connection, "run", other["id"], PAYLOAD, PAYLOAD),
        audited(connection, "definition", run["id"], PAYLOAD, PAYLOAD),
    ]
    erase(connection, [run["id"]], OPERATOR)
    assert audit_row(connection, of_run) == {"before": {"priority": 1}, "after": {"priority": 1}}
    for audit_id in untouched:
        assert audit_row(connection, audit_id) == {"before": json.loads(PAYLOAD), "after": json.loads(PAYLOAD)}
    [erasure] = fetch_all(connection, "SELECT * FROM rowcall.audit_log WHERE action = 'erase'")
    assert (erasure["who"], erasure["subject_id"], erasure["request_id"]) == ("cli:ada", run["id"], "request-1")


def test_a_locked_run_is_skipped(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        run = run_in(connection, Status.SUCCEEDED, payload="""'{"user_id": 7}'""")
    with database.transaction(fresh_url) as holding, database.transaction(fresh_url) as connection:
        fetch_all(holding, "SELECT FROM rowcall.job_runs WHERE id = %(id)s FOR UPDATE", run)
        fetch_all(connection, "SET LOCAL lock_timeout = '1s'")
        assert erase(connection, [run["id"]], OPERATOR) == []
