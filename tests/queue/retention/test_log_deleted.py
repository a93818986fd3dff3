"""The lines of a run are deleted with it by the database, also when older code, which does not know them, prunes it."""

from __future__ import annotations

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, Row, fetch_all, fetch_one, fetch_value
from rowcall.queue.retention.erase import ERASE
from rowcall.queue.retention.prune import PRUNE
from rowcall.status import Status
from tests.support.roles import role
from tests.support.rows import run_in
from tests.support.run_log import insert_lines, texts

DELETED = "DELETE FROM rowcall.job_runs WHERE id = ANY(%(run_ids)s)"
MADE_BARE = "UPDATE rowcall.job_runs SET payload = '{}', pruned_at = now() WHERE id = ANY(%(run_ids)s)"

MANY = 20_000
BATCH = 500

FILL = f"""
ALTER TABLE rowcall.run_logs SET (autovacuum_enabled = false);
INSERT INTO rowcall.job_runs (job_type, status, finished_at)
SELECT 'noop', 'succeeded', now() FROM generate_series(1, {MANY});
INSERT INTO rowcall.run_logs (run_id, line_no, lease_no, lease_line_no, logged_at, level, text)
SELECT id, line_no, 1, line_no, now(), 'info', 'packed'
FROM rowcall.job_runs CROSS JOIN generate_series(1, 3) AS line_no
"""

# What the current transaction has read of the table.
READ = "SELECT seq_scan, idx_tup_fetch, n_tup_del FROM pg_stat_xact_user_tables WHERE relname = 'run_logs'"


def logged(connection: PgConnection) -> int:
    """Insert a finished run that has logged two lines."""
    run_id: int = run_in(connection, Status.SUCCEEDED)["id"]
    insert_lines(connection, run_id, [1, 2])
    return run_id


@pytest.mark.parametrize("statement", [DELETED, MADE_BARE], ids=["deleted", "made bare"])
def test_the_lines_of_a_run_go_with_it_and_those_of_others_stay(connection: PgConnection, statement: str) -> None:
    run_id, other = logged(connection), logged(connection)
    fetch_all(connection, statement, {"run_ids": [run_id]})
    assert (texts(connection, run_id), texts(connection, other)) == ([], ["line 1", "line 2"])


@pytest.mark.parametrize("statement", [DELETED, MADE_BARE], ids=["deleted", "made bare"])
def test_a_role_that_has_no_rights_on_the_lines_can_prune_their_runs(fresh_url: str, statement: str) -> None:
    with database.transaction(fresh_url) as connection:
        run_id = logged(connection)
    with role(fresh_url, "older") as older:
        with database.transaction(fresh_url) as connection:
            fetch_all(connection, f"GRANT USAGE ON SCHEMA rowcall TO {older.name}")
            fetch_all(connection, f"GRANT SELECT, UPDATE, DELETE ON rowcall.job_runs TO {older.name}")
        with database.transaction(older.url) as connection:
            fetch_all(connection, statement, {"run_ids": [run_id]})
    with database.transaction(fresh_url) as connection:
        assert texts(connection, run_id) == []


@pytest.mark.parametrize("statement", [PRUNE, ERASE], ids=["prune", "erase"])
def test_beside_many_lines_only_those_of_the_batch_are_read_by_index(fresh_url: str, statement: str) -> None:
    connection = database.connect(fresh_url)
    fetch_all(connection, FILL)
    connection.commit()
    rows = fetch_all(
        connection,
        "SELECT id, id || '/' || extract(epoch FROM updated_at) AS version FROM rowcall.job_runs"
        f" ORDER BY id LIMIT {BATCH}",
    )
    ids = [row["id"] for row in rows]
    of_prune = {"due": ids, "versions": [row["version"] for row in rows]}
    fetch_all(connection, statement, {**of_prune, "run_ids": ids, "who": "cli:me", "request_id": None})
    read: Row | None = fetch_one(connection, READ)
    connection.close()
    assert read == {"seq_scan": 0, "idx_tup_fetch": 3 * BATCH, "n_tup_del": 3 * BATCH}


@pytest.mark.parametrize(
    ("statement", "called"),
    [
        ("UPDATE rowcall.job_runs SET result = '{}', finished_at = now(), updated_at = now()", False),
        ("UPDATE rowcall.job_runs SET pruned_at = now()", True),
        ("DELETE FROM rowcall.job_runs", True),
    ],
    ids=["ended", "made bare", "deleted"],
)
def test_only_what_prunes_a_run_calls_the_trigger(connection: PgConnection, statement: str, called: bool) -> None:
    logged(connection)
    explained = fetch_value(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
    assert [trigger["Trigger Name"] for trigger in explained[0]["Triggers"]].count("job_runs_log_deleted") == called
