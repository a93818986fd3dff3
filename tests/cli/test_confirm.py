"""What cannot be undone is asked first, and refused where nobody can be asked."""

from __future__ import annotations

import pytest

from rowcall.base import database
from rowcall.queue.workers import Registration, register
from rowcall.schema.revision import schema_of
from rowcall.status import Status
from tests.support.processes import redirected, rowcall
from tests.support.rows import run_in
from tests.support.terminal import on_terminal


@pytest.mark.parametrize(
    ("words", "consequence"),
    [
        (["prune"], "this deletes old runs and their expired keys"),
        (["migrate", "--to", "base"], "this drops all tables of Rowcall"),
        (
            ["migrate", "--to", "0001"],
            (
                "this deletes the data that only schemas newer than 0001 store, such as the logs of runs, the"
                " archive table with all archived runs, and the idempotency keys of requests that got an existing run"
            ),
        ),
        (["up"], "this migrates the database test_"),
    ],
)
def test_where_nobody_can_be_asked_yes_must_be_given(
    environment: dict[str, str], words: list[str], consequence: str
) -> None:
    refused = rowcall(environment, *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert consequence in refused.stderr
    assert "--yes" in refused.stderr


def test_a_migration_back_names_its_database_and_the_workers_on_it(environment: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        register(connection, Registration("here", "host", 1, "1", None, ["noop"], 1))
        run_in(connection, Status.RUNNING)
    for target in ("base", "0001"):
        refused = rowcall({**environment, "DATABASE_URL": fresh_url}, "migrate", "--to", target).stderr
        name = fresh_url.rpartition("/")[2]
        assert f", in the database {name} on 127.0.0.1, while 1 worker works on it; 1 run is running: there" in refused


def test_a_migration_back_names_the_runs_that_the_older_version_does_not_know(
    environment: dict[str, str], fresh_url: str
) -> None:
    here = {**environment, "DATABASE_URL": fresh_url}
    assert "does not know" not in rowcall(here, "migrate", "--to", "0001").stderr
    with database.transaction(fresh_url) as connection:
        run_in(connection, Status.QUEUED, job_type="'carry_out_operation'")
    told = " ".join(rowcall(here, "migrate", "--to", "0001", "--yes").stderr.split())
    assert told == (
        "rowcall: the older version does not know the job type of 1 unfinished run (carry_out_operation): cancel it"
        " with `rowcall runs cancel --type carry_out_operation`"
    )


def test_where_there_is_no_schema_there_is_nothing_to_remove(environment: dict[str, str], empty_url: str) -> None:
    for _ in range(2):
        done = rowcall({**environment, "DATABASE_URL": empty_url}, "migrate", "--to", "base", "--yes")
        assert (done.returncode, done.stdout) == (0, "the database has no Rowcall schema: there is nothing to remove\n")
    with database.internal_transaction(empty_url) as connection:
        assert database.fetch_value(connection, "SELECT to_regnamespace('rowcall') IS NULL")


@pytest.mark.parametrize("words", [["prune"], ["erase", "1"], ["migrate", "--to", "base"], ["up"]], ids=" ".join)
def test_a_closed_standard_input_is_like_an_empty_one(environment: dict[str, str], words: list[str]) -> None:
    closed, empty = (redirected(environment, redirection, *words) for redirection in ("<&-", "</dev/null"))
    assert (closed.returncode, closed.stdout, closed.stderr) == (empty.returncode, empty.stdout, empty.stderr)
    assert "there is no terminal to ask for confirmation; use --yes" in closed.stderr


@pytest.mark.parametrize(("answer", "is_there"), [("n", True), ("", True), ("y", False)])
def test_at_a_terminal_only_a_yes_goes_on(
    environment: dict[str, str], fresh_url: str, answer: str, is_there: bool
) -> None:
    said = on_terminal(
        {**environment, "DATABASE_URL": fresh_url}, "migrate", "--to", "base", typed=f"{answer}\n", errors_too=True
    )
    assert "Continue? [y/N]" in "".join(said)
    with database.internal_transaction(fresh_url) as connection:
        assert (schema_of(connection) is not None) is is_there


def test_what_only_counts_asks_nothing(environment: dict[str, str]) -> None:
    assert rowcall(environment, "prune", "--dry-run").returncode == 0


def test_prune_does_not_ask_where_there_is_no_schema(environment: dict[str, str], empty_url: str) -> None:
    refused = rowcall({**environment, "DATABASE_URL": empty_url}, "prune")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("rowcall: the database has no Rowcall schema")
