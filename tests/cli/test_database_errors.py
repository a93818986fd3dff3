"""What a command says if the database cannot be reached, or cannot write."""

from __future__ import annotations

import pytest
from psycopg2.extensions import parse_dsn

from rowcall.base import database
from rowcall.base.errors.sentences import one_line
from tests.support.processes import rowcall

# What PostgreSQL raises if a table cannot grow.
FULL_DISK = """
CREATE FUNCTION rowcall.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full';
END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON rowcall.{table} FOR EACH ROW EXECUTE FUNCTION rowcall.full_disk()
"""


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("job_runs", ["enqueue", "noop"]),
        ("queues", ["queues", "pause", "mail"]),
        ("api_keys", ["keys", "create", "shop", "--scope", "read"]),
    ],
)
def test_a_database_whose_disk_is_full_is_not_called_a_lost_connection(
    environment: dict[str, str], fresh_url: str, table: str, words: list[str]
) -> None:
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, FULL_DISK.format(table=table))
    ended = rowcall({**environment, "DATABASE_URL": fresh_url}, *words)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr == (
        'rowcall: the database has run out of a resource: could not extend file "base/1/2": No space left'
        " on device; free it on the database server, and try again\n"
    )


def test_what_libpq_says_on_several_lines_is_one_sentence(environment: dict[str, str]) -> None:
    refused = rowcall({**environment, "DATABASE_URL": "postgresql://me@127.0.0.1:1,127.0.0.1:1/x"}, "runs", "list")
    asked = "(Is the server running on that host and accepting TCP/IP connections?)"
    assert refused.stderr.count(f"Connection refused {asked}; c") == 2, refused.stderr
    assert one_line("it is gone.\n\tThis may mean\n\tnothing.\n") == "it is gone (This may mean nothing)"


@pytest.mark.parametrize("words", [["runs", "list"], ["migrate"], ["worker", "once"]], ids=" ".join)
@pytest.mark.parametrize("url", ["postgresql://me@127.0.0.1:1/x", "no_such_database"])
def test_a_connection_that_was_never_there_is_not_called_lost(
    environment: dict[str, str], words: list[str], url: str
) -> None:
    if url == "no_such_database":
        url = environment["DATABASE_URL"].replace(parse_dsn(environment["DATABASE_URL"])["dbname"], url)
    ended = rowcall({**environment, "DATABASE_URL": url}, *words)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("rowcall: no connection to postgresql://"), ended.stderr
    assert "lost the connection" not in ended.stderr


def test_options_that_a_pooler_refuses_are_traced_to_the_variable() -> None:
    refused = Exception("FATAL: unsupported startup parameter: options")
    assert "unset PGOPTIONS" in str(database.unreachable("postgresql://h/d", refused))
