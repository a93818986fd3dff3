"""Indexes of large tables: built without blocking, and built again after an interruption."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.schema import REVISION
from tests.schema.catalogue import asked
from tests.schema.newer import INDEX_IS_VALID, NEXT, newer_rowcall
from tests.support.processes import LIMIT_SECONDS, rowcall, start, wait_until

BUILDERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%%' AND state = 'active'
"""

WAITING_FOR_THE_BUILDER = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE 'LOCK TABLE%%' AND wait_event_type = 'Lock'
"""

MIGRATORS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%%advisory_xact_lock%%'
"""

THE_INDEX = "indexrelid = 'rowcall.job_runs_note'::regclass"

LOOKING_FOR_BUILDERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle' AND query LIKE '%%CREATE INDEX CONCURRENTLY%%job_runs_note%%'
"""


@pytest.fixture
def newer(environment: dict[str, str], fresh_url: str, tmp_path: Path) -> dict[str, str]:
    """Return the environment of the next version of Rowcall, whose migration builds an index on job_runs."""
    return newer_rowcall(tmp_path, {**environment, "DATABASE_URL": fresh_url})


@pytest.fixture
def busy(fresh_url: str) -> Iterator[PgConnection]:
    """Yield a connection whose lock on a table can keep the steps of a migration from beginning."""
    connection = database.connect(fresh_url)
    yield connection
    connection.close()


@pytest.fixture
def holder(fresh_url: str) -> Iterator[PgConnection]:
    """Yield a transaction with an old snapshot: building an index waits for its end, and nothing else does."""
    connection = database.connect(fresh_url)
    connection.set_session(isolation_level="REPEATABLE READ")
    database.fetch_all(connection, "SELECT 1")
    yield connection
    connection.close()


def index(url: str) -> list[dict[str, Any]]:
    return asked(url, INDEX_IS_VALID)


def wait_for_the_build(url: str) -> None:
    wait_until(lambda: index(url) == [{"indisvalid": False}] and asked(url, BUILDERS), "the index is being built")


def test_a_build_that_the_server_ended_is_begun_anew(
    newer: dict[str, str], fresh_url: str, holder: PgConnection
) -> None:
    with start(newer, "migrate") as migrating:
        wait_for_the_build(fresh_url)
        asked(fresh_url, f"SELECT pg_terminate_backend(pid) FROM ({BUILDERS}) AS builders")
        output, _ = migrating.communicate(timeout=LIMIT_SECONDS)
    assert migrating.returncode == 1
    assert "the index rowcall.job_runs_note was not built" in output
    assert "run `rowcall migrate` again" in output
    assert "Traceback" not in output
    assert index(fresh_url) == [{"indisvalid": False}]
    told = rowcall(newer, "doctor").stdout
    assert "rowcall.job_runs_note was interrupted or is still running: run `rowcall migrate`" in told
    holder.rollback()
    again = rowcall(newer, "migrate")
    assert again.stdout.splitlines()[:2] == [
        f"the schema is already {NEXT}; the steps that remained are done:",
        "  index job_runs_note",
    ]
    assert index(fresh_url) == [{"indisvalid": True}]


def test_a_build_that_goes_on_after_its_migrator_was_killed_is_waited_for(
    newer: dict[str, str], fresh_url: str, holder: PgConnection
) -> None:
    with start(newer, "migrate") as killed:
        wait_for_the_build(fresh_url)
        killed.kill()
    built = asked(fresh_url, "SELECT to_regclass('rowcall.job_runs_note')::oid")
    with start(newer, "migrate") as second:
        wait_until(lambda: asked(fresh_url, WAITING_FOR_THE_BUILDER), "the second one waits for the first one's build")
        holder.rollback()
        output, _ = second.communicate(timeout=LIMIT_SECONDS)
    assert output.splitlines()[0] == f"the schema is already {NEXT}: nothing to do"
    assert index(fresh_url) == [{"indisvalid": True}]
    assert asked(fresh_url, "SELECT to_regclass('rowcall.job_runs_note')::oid") == built


def test_a_build_that_is_just_being_committed_is_waited_for(
    newer: dict[str, str], fresh_url: str, holder: PgConnection
) -> None:
    holder.rollback()
    rowcall(newer, "migrate")
    asked(fresh_url, f"UPDATE pg_index SET indisvalid = false WHERE {THE_INDEX}")
    with database.transaction(fresh_url) as builder:
        valid = f"UPDATE pg_index SET indisvalid = true WHERE {THE_INDEX}"
        database.fetch_all(builder, f"{valid} -- as the end of CREATE INDEX CONCURRENTLY job_runs_note")
        with start(newer, "migrate") as second:
            wait_until(
                lambda: asked(fresh_url, LOOKING_FOR_BUILDERS), "the second one waits for the first one's commit"
            )
            builder.commit()
            output, _ = second.communicate(timeout=LIMIT_SECONDS)
    assert output.splitlines()[0] == f"the schema is already {NEXT}: nothing to do"


def test_a_build_keeps_nobody_from_working(
    newer: dict[str, str], environment: dict[str, str], fresh_url: str, holder: PgConnection
) -> None:
    ours = {**environment, "DATABASE_URL": fresh_url}
    with start(newer, "migrate") as migrating:
        wait_for_the_build(fresh_url)
        assert rowcall(ours, "enqueue", "noop", "{}").returncode == 0
        assert "succeeded 1" in rowcall(ours, "worker", "once").stdout
        holder.rollback()
        migrating.communicate(timeout=LIMIT_SECONDS)
    assert migrating.returncode == 0


def test_the_way_back_drops_the_index(newer: dict[str, str], fresh_url: str) -> None:
    assert rowcall(newer, "migrate").returncode == 0
    back = rowcall(newer, "migrate", "--to", REVISION, "--yes")
    assert back.returncode == 0, back.stderr
    assert index(fresh_url) == []


def test_a_migrator_that_waits_for_another_does_not_hold_up_its_index(
    newer: dict[str, str], fresh_url: str, busy: PgConnection
) -> None:
    """A server that deploys a moment later waits from before the build begins, and must have no snapshot meanwhile."""
    database.fetch_all(busy, "SELECT FROM rowcall.job_runs")
    migrators = [start(newer, "migrate") for _ in range(2)]
    wait_until(lambda: len(asked(fresh_url, MIGRATORS)) == 2, "one migrates, and the other waits")
    busy.rollback()
    try:
        assert [migrator.wait(LIMIT_SECONDS) for migrator in migrators] == [0, 0]
    finally:
        for migrator in migrators:
            migrator.kill()
            migrator.communicate()
    assert asked(fresh_url, INDEX_IS_VALID) == [{"indisvalid": True}]
