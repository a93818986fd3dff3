"""Databases that cannot be migrated stay as they are, and a sentence says why and what to do."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg2
import pytest

from rowcall.base import database
from rowcall.base.errors import MigrationRefused, SchemaMismatch
from rowcall.schema import REVISION, check_revision
from rowcall_migrations.migrate import migrate
from tests.schema.catalogue import asked, catalogue, objects
from tests.support.processes import rowcall
from tests.support.roles import Role, role


@pytest.fixture
def tenant(empty_url: str) -> Iterator[Role]:
    """Yield a role that may connect to an empty database, and nothing else: it is neither superuser nor owner."""
    with role(empty_url, "tenant") as made:
        yield made


def test_a_database_of_a_rowcall_before_0_2_is_refused(empty_url: str) -> None:
    asked(
        empty_url,
        "CREATE TABLE public.rowcall_schema_version (version_num text);"
        "INSERT INTO public.rowcall_schema_version VALUES ('0009'); CREATE TABLE public.job_runs (id bigint)",
    )
    before = objects(empty_url, "public")
    with pytest.raises(MigrationRefused, match=r"older than 0.2 .*nothing was changed: migrate another database, or"):
        migrate(empty_url, 3)
    assert objects(empty_url, "public") == before
    assert asked(empty_url, "SELECT to_regnamespace('rowcall') AS made") == [{"made": None}]


def test_a_schema_that_somebody_else_filled_is_refused(empty_url: str) -> None:
    asked(
        empty_url, "CREATE SCHEMA rowcall; CREATE TABLE rowcall.calls (id bigint); CREATE VIEW rowcall.rows AS SELECT 1"
    )
    before = objects(empty_url, "rowcall")
    with pytest.raises(MigrationRefused, match=r"objects that Rowcall did not create \(calls, rows\): rename it"):
        migrate(empty_url, 3)
    assert objects(empty_url, "rowcall") == before


def test_a_version_table_of_somebody_elses_is_refused_with_a_sentence(empty_url: str) -> None:
    asked(empty_url, "CREATE SCHEMA rowcall; CREATE TABLE rowcall.schema_version (release text)")
    with pytest.raises(SchemaMismatch, match=r"rowcall\.schema_version is not Rowcall's: rename that schema"):
        migrate(empty_url, 3)
    with database.transaction(empty_url) as connection, pytest.raises(SchemaMismatch, match="is not Rowcall's"):
        check_revision(connection)


def test_where_no_schema_is_there_is_nothing_to_remove_and_nothing_to_ask(
    environment: dict[str, str], empty_url: str
) -> None:
    done = rowcall({**environment, "DATABASE_URL": empty_url}, "migrate", "--to", "base")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the database has no Rowcall schema: there is nothing to remove\n"
    assert asked(empty_url, "SELECT to_regnamespace('rowcall') AS made") == [{"made": None}]


def test_the_schema_is_removed_without_the_app_whose_code_is_gone(environment: dict[str, str], fresh_url: str) -> None:
    here = {**environment, "DATABASE_URL": fresh_url, "ROWCALL_APP": "demolished"}
    done = rowcall(here, "migrate", "--to", "base", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"the schema was {REVISION}, and is now empty; undone:\n")


def test_a_database_that_cannot_hold_every_character_is_refused(empty_url: str) -> None:
    name = f"latin_{uuid.uuid4().hex[:8]}"
    connection = database.connect(empty_url)
    connection.autocommit = True
    database.fetch_all(connection, f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(
            MigrationRefused, match=f"the database {name} uses the encoding LATIN1, and payloads need UTF8"
        ):
            migrate(urlsplit(empty_url)._replace(path=f"/{name}").geturl(), 3)
    finally:
        database.fetch_all(connection, f"DROP DATABASE {name}")
        connection.close()


def test_a_schema_that_belongs_to_somebody_else_is_refused_with_what_its_owner_can_do(tenant: Role) -> None:
    asked(tenant.owners_url, "CREATE SCHEMA rowcall")
    with pytest.raises(
        MigrationRefused, match=rf'ask rowcall to run `GRANT USAGE, CREATE ON SCHEMA rowcall TO "{tenant.name}"`'
    ):
        migrate(tenant.url, 3)
    asked(tenant.owners_url, f"GRANT USAGE, CREATE ON SCHEMA rowcall TO {tenant.name}")
    assert migrate(tenant.url, 3).after == REVISION


def test_a_role_that_may_create_no_schema_is_refused_with_what_the_owner_can_do(tenant: Role) -> None:
    name = urlsplit(tenant.url).path[1:]
    with pytest.raises(MigrationRefused, match=rf'`GRANT CREATE ON DATABASE "{name}" TO "{tenant.name}"`'):
        migrate(tenant.url, 3)
    asked(tenant.owners_url, f'GRANT CREATE ON DATABASE "{name}" TO "{tenant.name}"')
    assert migrate(tenant.url, 3).after == REVISION


def test_a_schema_made_for_the_role_is_enough(tenant: Role) -> None:
    asked(tenant.owners_url, f'CREATE SCHEMA rowcall AUTHORIZATION "{tenant.name}"')
    assert migrate(tenant.url, 3).after == REVISION
    assert migrate(tenant.url, 3, "base").after is None


def test_a_role_that_does_not_own_the_tables_is_refused_and_changes_nothing(tenant: Role) -> None:
    migrate(tenant.owners_url, 3)
    asked(
        tenant.owners_url,
        f"GRANT USAGE, CREATE ON SCHEMA rowcall TO {tenant.name};"
        f"GRANT ALL ON ALL TABLES IN SCHEMA rowcall TO {tenant.name}",
    )
    before = catalogue(tenant.owners_url)
    with pytest.raises(MigrationRefused, match=r"must be owner of .*; nothing was changed: run .* as the owner"):
        migrate(tenant.url, 3, "base")
    assert catalogue(tenant.owners_url) == before


def test_a_role_that_may_not_look_is_told_of_the_grants(tenant: Role) -> None:
    migrate(tenant.owners_url, 3)
    with database.transaction(tenant.url) as connection:
        with pytest.raises(SchemaMismatch, match=r"may not read the schema rowcall: .* `rowcall migrate --grants`"):
            check_revision(connection)
        connection.rollback()


def test_a_read_only_database_is_refused_also_where_nothing_would_be_done(empty_url: str) -> None:
    for prepared in ("empty", "migrated"):
        if prepared == "migrated":
            migrate(empty_url, 3)
        with pytest.raises(MigrationRefused, match="is read-only .*: set DATABASE_URL to the primary"):
            migrate(f"{empty_url}?options=-cdefault_transaction_read_only%3Don", 3)


def test_the_command_says_it_in_one_line(tenant: Role, environment: dict[str, str]) -> None:
    refused = rowcall({**environment, "DATABASE_URL": tenant.url}, "migrate")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.count("\n") == 1
    assert "`GRANT CREATE ON DATABASE" in refused.stderr


def test_what_a_role_may_not_do_is_a_sentence_of_every_command(tenant: Role, environment: dict[str, str]) -> None:
    migrate(tenant.owners_url, 3)
    asked(
        tenant.owners_url,
        f"GRANT USAGE ON SCHEMA rowcall TO {tenant.name}; GRANT SELECT ON rowcall.schema_version TO {tenant.name}",
    )
    refused = rowcall({**environment, "DATABASE_URL": tenant.url}, "runs", "list")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "permission denied for table job_runs" in refused.stderr
    assert "rowcall migrate --grants" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_superuser_is_not_needed(tenant: Role) -> None:
    with database.transaction(tenant.url) as connection, pytest.raises(psycopg2.errors.InsufficientPrivilege):
        database.fetch_all(connection, "CREATE ROLE another")
