"""The schema: what migrations make, what the code believes, and how one becomes the other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy

from rowcall.base import database
from rowcall.base.errors import DatabaseUnreachable, SchemaMismatch
from rowcall.schema import REVISION, check_revision
from rowcall.schema.revision import VERSION_TABLE
from rowcall.schema.tables import metadata
from rowcall_migrations.migrate import migrate
from tests.support.processes import ROOT

VERSIONS = ROOT / "migrations" / "rowcall_migrations" / "versions"

# Everything that makes a table what it is, as PostgreSQL itself writes it down.
CATALOGUE = """
SELECT 'column' AS kind, c.relname || '.' || a.attname AS name,
    concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
        pg_get_expr(d.adbin, d.adrelid)) AS definition
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind = 'r' AND c.relnamespace = 'rowcall'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = 'rowcall'::regnamespace AND contype <> 'n'
UNION ALL
SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid)
FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = 'rowcall'::regnamespace
UNION ALL
SELECT 'options', relname, array_to_string(reloptions, ',')
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'rowcall'::regnamespace
"""


def catalogue(url: str) -> set[tuple[str, str, str | None]]:
    with database.transaction(url) as connection:
        rows = database.fetch_all(connection, CATALOGUE)
    return {(row["kind"], row["name"], row["definition"]) for row in rows if VERSION_TABLE not in row["name"]}


def test_the_migrated_database_is_what_the_code_believes(fresh_url: str, empty_url: str) -> None:
    engine = database.engine(empty_url, pool_size=1)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA rowcall")
        metadata.create_all(connection)
    engine.dispose()
    assert catalogue(fresh_url) == catalogue(empty_url)


def test_the_comparison_sees_a_changed_partial_index(fresh_url: str, empty_url: str) -> None:
    migrate(empty_url, lock_timeout=3)
    assert catalogue(empty_url) == catalogue(fresh_url)
    with database.transaction(empty_url) as connection:
        database.fetch_all(
            connection,
            "DROP INDEX rowcall.job_runs_live;"
            "CREATE INDEX job_runs_live ON rowcall.job_runs (queue, priority, run_at, id) WHERE status = 'queued'",
        )
    assert catalogue(empty_url) != catalogue(fresh_url)


def test_the_newest_version_is_the_one_the_code_asks_for() -> None:
    newest = max(file.name for file in VERSIONS.glob("[0-9]*.py"))
    assert newest.startswith(REVISION + "_")


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
    assert seen == [set()]
    assert functions(empty_url) == 0


def functions(url: str) -> int:
    with database.transaction(url) as connection:
        count: int = database.fetch_value(
            connection, "SELECT count(*) FROM pg_proc WHERE pronamespace = 'rowcall'::regnamespace"
        )
    return count


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


def test_a_busy_table_is_waited_for_in_short_turns_and_the_migration_done_when_it_is_free(fresh_url: str) -> None:
    busy = database.connect(fresh_url)
    database.fetch_all(busy, "SELECT FROM example.users")
    threading.Timer(0.3, busy.rollback).start()
    assert migrate(fresh_url, 0.1, "0003").after == "0003"
    busy.close()


def test_a_table_that_stays_busy_is_left_alone_and_named_as_the_reason(fresh_url: str) -> None:
    before = catalogue(fresh_url)
    with database.transaction(fresh_url) as busy:
        database.fetch_all(busy, "SELECT FROM example.users")
        with pytest.raises(DatabaseUnreachable, match=r"table was busy .* nothing was changed.*ROWCALL_LOCK_TIMEOUT"):
            migrate(fresh_url, 0.01, "base")
    assert catalogue(fresh_url) == before


def test_an_older_schema_is_refused_with_what_to_run(fresh_url: str) -> None:
    migrate(fresh_url, 3, "0002")
    with (
        database.transaction(fresh_url) as connection,
        pytest.raises(SchemaMismatch, match=rf"is 0002, older .*\({REVISION}\): run `rowcall migrate`"),
    ):
        check_revision(connection)


def test_a_database_without_schema_is_refused_with_what_to_run(empty_url: str) -> None:
    with (
        database.transaction(empty_url) as connection,
        pytest.raises(SchemaMismatch, match=r"has no Rowcall schema .*: run `rowcall migrate`"),
    ):
        check_revision(connection)


def test_a_newer_schema_is_refused_and_not_migrated(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(SchemaMismatch, match=r"is 9999, newer than this code knows .*deploy the newer Rowcall"):
        migrate(fresh_url, lock_timeout=3)


def test_the_audit_log_takes_rows_and_gives_none_back(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        database.fetch_all(
            connection, "INSERT INTO rowcall.audit_log (who, action, subject) VALUES ('a', 'retry', 'run')"
        )
    engine = database.engine(fresh_url, pool_size=1)
    for change in (
        "UPDATE rowcall.audit_log SET who = 'b'",
        "DELETE FROM rowcall.audit_log",
        "TRUNCATE rowcall.audit_log",
    ):
        with engine.connect() as changing, pytest.raises(sqlalchemy.exc.DBAPIError, match="append-only"):
            changing.exec_driver_sql(change)
    engine.dispose()
