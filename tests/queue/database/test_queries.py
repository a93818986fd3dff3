"""docs/queries.sql has every statement that the code sends, in a form that anybody can run in psql."""

from __future__ import annotations

import subprocess

import pytest

from rowcall.base import database
from rowcall.local_postgres.programs import find_programs
from rowcall.queue.operations import Action
from rowcall.status import Status
from tests.conftest import SOURCE
from tests.queries.page import page
from tests.queries.statements import sources, statements
from tests.support.operations import start
from tests.support.processes import ROOT
from tests.support.rows import definition_of, run_in

FILE = ROOT / "docs" / "queries.sql"


@pytest.fixture
def filled_url(fresh_url: str) -> str:
    """Return the URL of a database with the run, the definition and the operation that the sample values name."""
    with database.transaction(fresh_url) as connection:
        definition_of(connection, "nightly")
        for status in Status:
            run_in(connection, status, definition_id="1")
        assert start(connection, Action.RETRY, everything=True) == 1
    return fresh_url


def test_the_file_holds_what_the_code_sends() -> None:
    assert FILE.read_text() == page(), "run `make docs`"


def test_every_statement_runs_in_psql_and_changes_nothing(filled_url: str) -> None:
    before = rows(filled_url)
    psql = find_programs(SOURCE).folder / "psql"
    command = [str(psql), filled_url, "--no-psqlrc", "--quiet", "--output=/dev/null", f"--file={FILE}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert rows(filled_url) == before


def test_every_statement_stands_once_and_whole() -> None:
    found = statements()
    assert len({(statement.module, statement.name) for statement in found}) == len(found) > 100
    assert [statement.name for statement in found if "{" in statement.text.replace("'{", "").replace("'{}'", "")] == []


def test_no_statement_is_written_inside_a_function() -> None:
    assert {name: source.written_inside() for name, source in sources().items() if source.written_inside()} == {}


def rows(url: str) -> list[database.Row]:
    with database.transaction(url) as connection:
        return database.fetch_all(connection, "SELECT * FROM rowcall.job_runs ORDER BY id")
