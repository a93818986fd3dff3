"""Migrations: the tables that they make match the code, and each downgrade undoes its upgrade."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy

from rowcall import queue
from rowcall.base import database
from rowcall.base.database.pool import open_pool
from rowcall.base.errors import DatabaseUnreachable, SchemaMismatch
from rowcall.schema import REVISION, check_revision, schema_of
from rowcall.schema.tables import metadata
from rowcall_migrations.migrate import migrate
from tests.schema.catalogue import asked, catalogue, objects
from tests.schema.newer import NEXT, newer_rowcall
from tests.support.pooler import pgbouncer
from tests.support.processes import ROOT, rowcall, wait_until

VERSIONS = ROOT / "migrations" / "rowcall_migrations" / "versions"


def test_the_migrated_database_is_what_the_code_believes(fresh_url: str, empty_url: str) -> None:
    engine = open_pool(empty_url, pool_size=1)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA rowcall")
        metadata.create_all(connection)
    engine.dispose()
    assert catalogue(fresh_url) == catalogue(empty_url)


def test_the_comparison_sees_a_changed_partial_index(fresh_url: str, empty_url: str) -> None:
    migrate(empty_url, lock_timeout=3)
    assert catalogue(empty_url) == catalogue(fresh_url)
    asked(
        empty_url,
        "DROP INDEX rowcall.job_runs_live;"
        "CREATE INDEX job_runs_live ON rowcall.job_runs (queue, priority, run_at, id) WHERE status = 'queued'",
    )
    assert catalogue(empty_url) != catalogue(fresh_url)


def test_the_newest_version_is_the_one_the_code_asks_for() -> None:
    newest = max(file.name for file in VERSIONS.glob("[0-9]*.py"))
    assert newest.startswith(REVISION + "_")


def test_nothing_of_ours_is_in_public(empty_url: str) -> None:
    before = objects(empty_url, "public")
    migrate(empty_url, lock_timeout=3)
    assert objects(empty_url, "public") == before
    assert {"job_runs", "schema_version", "refuse_audit_change"} <= objects(empty_url, "rowcall")


def test_every_step_goes_up_and_down_again(empty_url: str) -> None:
    seen = [catalogue(empty_url)]
    revisions = sorted(file.name[:4] for file in VERSIONS.glob("[0-9]*.py"))
    for revision in revisions:
        migrate(empty_url, 3, revision)
        seen.append(catalogue(empty_url))
    for revision in [*reversed(revisions[:-1]), "base"]:
        seen.pop()
        migrate(empty_url, 3, revision)
        assert catalogue(empty_url) == seen[-1]
    left = objects(empty_url, "rowcall")
    assert {name for name in left if "schema_version" not in name} == set()
    assert migrate(empty_url, 3).after == REVISION


def test_the_next_version_goes_up_and_down_again(environment: dict[str, str], fresh_url: str, tmp_path: Path) -> None:
    before = catalogue(fresh_url)
    newer = newer_rowcall(tmp_path, {**environment, "DATABASE_URL": fresh_url})
    up = rowcall(newer, "migrate")
    assert up.stdout.splitlines()[:3] == [
        f"the schema was {REVISION}, and is now {NEXT}:",
        f"  {NEXT} A note beside each run, and where to find it.",
        "  index job_runs_note",
    ], up.stderr
    assert ("index", "job_runs_note") in {found[:2] for found in catalogue(fresh_url)}
    assert rowcall(newer, "migrate", "--to", REVISION, "--yes").returncode == 0
    assert catalogue(fresh_url) == before


def test_it_says_what_it_did_and_does_nothing_twice(empty_url: str) -> None:
    first = migrate(empty_url, lock_timeout=3)
    assert (first.before, first.after) == (None, REVISION)
    assert [step[:4] for step in first.steps] == sorted(file.name[:4] for file in VERSIONS.glob("[0-9]*.py"))
    second = migrate(empty_url, lock_timeout=3)
    assert (second.before, second.after, second.steps) == (REVISION, REVISION, ())


def test_ten_at_once_are_one(empty_url: str) -> None:
    with ThreadPoolExecutor(10) as pool:
        done = list(pool.map(lambda _: migrate(empty_url, lock_timeout=3), range(10)))
    assert sorted(len(one.steps) for one in done) == [0] * 9 + [int(REVISION)]


@pytest.mark.program("pgbouncer")
def test_ten_at_once_are_one_through_a_pooler_in_transaction_mode_too(empty_url: str, tmp_path: Path) -> None:
    with pgbouncer(empty_url, "transaction", tmp_path) as url, ThreadPoolExecutor(10) as pool:
        done = list(pool.map(lambda _: migrate(url, lock_timeout=3), range(10)))
    assert sorted(len(one.steps) for one in done) == [0] * 9 + [int(REVISION)]


def test_a_busy_table_is_waited_for_in_short_turns_and_the_migration_done_when_it_is_free(fresh_url: str) -> None:
    busy = database.connect(fresh_url)
    database.fetch_all(busy, "SELECT FROM rowcall.job_runs")
    threading.Timer(0.3, busy.rollback).start()
    assert migrate(fresh_url, 0.1, "base").after is None
    busy.close()


WAITING = """
SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %(table)s::regclass
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def test_after_a_deadlock_with_another_transaction_the_migration_is_tried_again(fresh_url: str) -> None:
    migrate(fresh_url, 3, "0001")
    with (
        database.transaction(fresh_url) as looking,
        database.transaction(fresh_url) as gate,
        database.transaction(fresh_url) as other,
        ThreadPoolExecutor(2) as pool,
    ):

        def wait_for(table: str) -> None:
            waits = lambda: database.fetch_value(looking, WAITING, {"table": f"rowcall.{table}"})  # noqa: E731
            wait_until(waits, f"a session waits for {table}")

        database.fetch_all(gate, "SELECT FROM rowcall.job_definitions")
        database.fetch_all(other, "SELECT FROM rowcall.workers")
        migrating = pool.submit(migrate, fresh_url, 60)
        wait_for("job_definitions")
        reading = pool.submit(database.fetch_all, other, "SELECT FROM rowcall.job_runs")
        wait_for("job_runs")
        database.fetch_all(looking, "SELECT pg_sleep(1.5)")  # so that the migration finds the deadlock, not the reader
        gate.rollback()
        assert reading.result() == []
        other.rollback()
        assert migrating.result().after == REVISION


def test_a_table_that_stays_busy_is_left_alone_and_named_as_the_reason(fresh_url: str) -> None:
    before = catalogue(fresh_url)
    with database.transaction(fresh_url) as busy:
        database.fetch_all(busy, "SELECT FROM rowcall.job_runs")
        with pytest.raises(DatabaseUnreachable, match=r"table was busy .* nothing was changed.*ROWCALL_LOCK_TIMEOUT"):
            migrate(fresh_url, 0.01, "base")
    assert catalogue(fresh_url) == before


def test_a_revision_that_does_not_exist_is_refused(fresh_url: str) -> None:
    with pytest.raises(SchemaMismatch, match=r"cannot migrate to '0815': there is no such revision; .*: 0001, 0002$"):
        migrate(fresh_url, 3, "0815")


def test_an_older_schema_is_refused_with_what_to_run(fresh_url: str) -> None:
    asked(fresh_url, "UPDATE rowcall.schema_version SET version_num = '0000', fits = '0000'")
    with (
        database.transaction(fresh_url) as connection,
        pytest.raises(SchemaMismatch, match=rf"is 0000, older .*\({REVISION}\): run `rowcall migrate`"),
    ):
        check_revision(connection)


def test_enqueuing_with_an_older_schema_is_refused_with_what_to_run(fresh_url: str) -> None:
    migrate(fresh_url, 3, "0001")
    with (
        database.transaction(fresh_url) as connection,
        pytest.raises(SchemaMismatch, match=r"function rowcall\.insert_run\(.* does not exist; run `rowcall migrate`"),
    ):
        queue.enqueue(connection, "noop", {})


def test_a_database_without_schema_is_refused_with_what_to_run(empty_url: str) -> None:
    with (
        database.transaction(empty_url) as connection,
        pytest.raises(SchemaMismatch, match=r"has no Rowcall schema .*: run `rowcall migrate`"),
    ):
        check_revision(connection)


def test_a_newer_schema_that_this_code_does_not_fit_is_refused_and_not_migrated(fresh_url: str) -> None:
    asked(fresh_url, "UPDATE rowcall.schema_version SET version_num = '9999', fits = '9000'")
    for target in ("head", REVISION, "base"):
        with pytest.raises(SchemaMismatch, match=r"is 9999, too new for this code .*of 9000: deploy the newer Rowcall"):
            migrate(fresh_url, 3, target)


def test_a_newer_schema_that_this_code_fits_is_left_as_it_is(fresh_url: str) -> None:
    asked(fresh_url, f"UPDATE rowcall.schema_version SET version_num = '9999', fits = '{REVISION}'")
    before = catalogue(fresh_url)
    for target in ("head", REVISION):
        assert migrate(fresh_url, 3, target).steps == ()
    with pytest.raises(SchemaMismatch, match=r"is 9999, newer than this code .*: migrate back with the newer"):
        migrate(fresh_url, 3, "base")
    with database.transaction(fresh_url) as connection:
        check_revision(connection)
        assert schema_of(connection) == ("9999", REVISION)
    assert catalogue(fresh_url) == before


def test_the_audit_log_takes_rows_and_gives_none_back(fresh_url: str) -> None:
    asked(
        fresh_url,
        "INSERT INTO rowcall.audit_log (who, action, subject, after) VALUES ('a', 'clone', 'run',"
        """ '{"payload": {"user_id": 7}, "status": "queued"}')""",
    )
    engine = open_pool(fresh_url, pool_size=1)
    for change in (
        "UPDATE rowcall.audit_log SET who = 'b'",
        "DELETE FROM rowcall.audit_log",
        "TRUNCATE rowcall.audit_log",
        "UPDATE rowcall.audit_log SET before = '{}'",
        "UPDATE rowcall.audit_log SET after = after - 'status'",
        "UPDATE rowcall.audit_log SET after = after - 'payload', who = 'b'",
    ):
        with engine.connect() as changing, pytest.raises(sqlalchemy.exc.DBAPIError, match="append-only"):
            changing.exec_driver_sql(change)
    engine.dispose()
    # A person's data must be erasable, without another person's in the same row.
    asked(fresh_url, "UPDATE rowcall.audit_log SET after = after - 'payload'")
    states = """'{"payload": {"user_id": 7}}', '{"payload": {"user_id": 8}}'"""
    asked(
        fresh_url,
        "INSERT INTO rowcall.audit_log (who, action, subject, before, after)"
        f" VALUES ('a', 'changed', 'definition', {states})",
    )
    for side, left in (("before", [{}, {"payload": {"user_id": 8}}]), ("after", [{}, {}])):
        asked(fresh_url, f"UPDATE rowcall.audit_log SET {side} = {side} - 'payload' WHERE action = 'changed'")
        [row] = asked(fresh_url, "SELECT before, after FROM rowcall.audit_log WHERE action = 'changed'")
        assert [row["before"], row["after"]] == left
