"""`rowcall migrate --sql` prints a script that psql runs as it is, after which `rowcall migrate` has nothing to do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rowcall.schema import REVISION
from rowcall_migrations.migrate import migrate
from tests.schema.catalogue import asked, catalogue
from tests.schema.newer import INDEX_IS_VALID, NEXT, newer_rowcall
from tests.support.processes import rowcall
from tests.support.psql import psql
from tests.support.roles import role


def printed(environment: dict[str, str], *options: str) -> str:
    """Return what the command prints; it needs no database."""
    done = rowcall({**environment, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}, "migrate", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_script_makes_what_migrate_makes(environment: dict[str, str], empty_url: str, fresh_url: str) -> None:
    psql(empty_url, printed(environment, "--sql"))
    assert catalogue(empty_url) == catalogue(fresh_url)
    assert migrate(empty_url, 3).steps == ()
    versions = "SELECT * FROM rowcall.schema_version"
    assert asked(empty_url, versions) == asked(fresh_url, versions)


def test_a_script_that_a_dba_has_run_leaves_a_role_without_rights_nothing_to_do(
    environment: dict[str, str], empty_url: str
) -> None:
    psql(empty_url, printed(environment, "--sql"))
    with role(empty_url, "reader") as reader:
        asked(empty_url, f"GRANT USAGE ON SCHEMA rowcall TO {reader.name}")
        asked(empty_url, f"GRANT SELECT ON rowcall.schema_version TO {reader.name}")
        assert migrate(reader.url, 3).steps == ()


def test_the_next_script_begins_where_the_database_is(
    environment: dict[str, str], fresh_url: str, tmp_path: Path
) -> None:
    newer = newer_rowcall(tmp_path, {**environment, "DATABASE_URL": fresh_url})
    script = printed(newer, "--sql", "--from", REVISION)
    assert "CREATE SCHEMA" not in script
    psql(fresh_url, script)
    assert asked(fresh_url, INDEX_IS_VALID) == [{"indisvalid": True}]
    assert rowcall(newer, "migrate").stdout.splitlines()[0] == f"the schema is already {NEXT}: nothing to do"


def test_a_second_run_of_the_script_changes_nothing(environment: dict[str, str], fresh_url: str) -> None:
    before = catalogue(fresh_url)
    with pytest.raises(subprocess.CalledProcessError) as refused:
        psql(fresh_url, printed(environment, "--sql"))
    assert "already exists" in refused.value.stderr
    assert catalogue(fresh_url) == before


def test_options_that_exclude_each_other_are_refused(environment: dict[str, str]) -> None:
    for options in (
        ["--sql", "--grants"],
        ["--sql", "--to", "base"],
        ["--from", REVISION],
        ["--role", "worker=a"],
        ["--grants", "--role", "boss=a"],
        ["--grants", "--role", 'worker="; DROP'],
    ):
        assert rowcall(environment, "migrate", *options).returncode == 2, options
    refused = rowcall(environment, "migrate", "--sql", "--from", "0815")
    assert (refused.returncode, "there is no revision '0815'" in refused.stderr) == (1, True)
