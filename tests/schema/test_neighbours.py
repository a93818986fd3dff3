"""Rowcall does not touch a team's own tables, even if they have the same names as ours."""

from __future__ import annotations

import pytest

from rowcall.base import database
from rowcall.schema.tables import metadata
from rowcall_migrations.migrate import migrate
from tests.schema.catalogue import asked, digest, objects
from tests.support.processes import rowcall

NAMES = sorted({table.name for table in metadata.tables.values()} | {"users", "orders", "schema_version"})


@pytest.fixture
def shared_url(empty_url: str) -> str:
    """Return a database whose default schema has a table for each of our names, with other columns and one row."""
    with database.transaction(empty_url) as connection:
        for name in NAMES:
            database.fetch_all(
                connection,
                f"CREATE TABLE public.{name} (id text PRIMARY KEY, status text, owner text);"
                f"INSERT INTO public.{name} VALUES ('1', 'running', 'the team')",
            )
    return empty_url


def test_tables_of_the_same_names_are_neither_read_nor_changed(shared_url: str, environment: dict[str, str]) -> None:
    before, there = digest(shared_url, "public"), objects(shared_url, "public")
    assert len(before) == len(NAMES)
    ours = {**environment, "DATABASE_URL": shared_url}
    for command in (
        ["migrate"],
        ["enqueue", "noop", "{}"],
        ["worker", "once"],
        ["runs", "list"],
        ["prune", "--yes"],
        ["queues", "pause", "default"],
        ["keys", "create", "somebody", "--scope", "read"],
        ["doctor"],
    ):
        done = rowcall(ours, *command)
        assert "Traceback" not in done.stderr, command
        assert (done.returncode == 0) or command == ["doctor"], (command, done.stderr)
    assert asked(shared_url, "SELECT status FROM rowcall.job_runs WHERE job_type = 'noop'") == [{"status": "succeeded"}]
    migrate(shared_url, 3, "base")
    assert digest(shared_url, "public") == before
    assert objects(shared_url, "public") == there
