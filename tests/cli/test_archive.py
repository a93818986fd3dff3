"""`rowcall archive`: the months of the archive table, and what is shown of an archived run."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.status import Status
from tests.support.processes import rowcall
from tests.support.roles import role
from tests.support.rows import run_in
from tests.support.terminal import on_terminal

DEFINITIONS = """
[definitions.prune_runs]
job_type = "prune_runs"
schedule = "17 3 * * *"
payload = { archive = "table" }
"""


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str, tmp_path: Path) -> dict[str, str]:
    """Return an environment with a database for the test, whose policy archives to the table."""
    (tmp_path / "definitions.toml").write_text(DEFINITIONS)
    environment = {**environment, "DATABASE_URL": fresh_url, "ROWCALL_ARCHIVE": str(tmp_path / "archive")}
    applied = rowcall(environment, "definitions", "apply", str(tmp_path / "definitions.toml"))
    assert applied.returncode == 0, applied.stderr
    return environment


def pruned(environment: dict[str, str]) -> int:
    """Prune a dead run of May 2020; return its id."""
    with database.transaction(environment["DATABASE_URL"]) as connection:
        run_id = old_run(connection)
    assert "archived 1;" in rowcall(environment, "prune", "--yes").stdout
    return run_id


def old_run(connection: PgConnection) -> int:
    times = dict.fromkeys(("created_at", "finished_at", "failed_at"), "'2020-05-10 12:00+00'")
    run_id: int = run_in(connection, Status.DEAD, **times, last_error="'it broke'", payload="'{\"n\": 1}'")["id"]
    return run_id


def test_an_empty_archive_says_how_it_fills(environment: dict[str, str]) -> None:
    told = rowcall(environment, "archive", "list")
    assert told.returncode == 0
    assert told.stdout == (
        'the archive table is empty; it fills if the policy of prune_runs has archive = "table"'
        " (docs/housekeeping.md)\n"
    )


def test_months_are_listed_exported_and_dropped(environment: dict[str, str], tmp_path: Path) -> None:
    run_id = pruned(environment)
    [month] = json.loads(rowcall(environment, "archive", "list", "--json").stdout)
    assert (month["month"], month["bytes"] > 0) == ("2020-05", True)
    listed = rowcall(environment, "archive", "list")
    assert "2020-05" in listed.stdout
    assert (
        listed.stderr
        == "runs is PostgreSQL's estimate; - means that it has none before the first ANALYZE of the month\n"
    )
    told = json.loads(rowcall(environment, "archive", "export", "2020-05", "--json").stdout)
    assert (told["runs"], Path(told["path"]).parent) == (1, tmp_path / "archive/2020/05")
    assert f"\n{run_id},".encode() in gzip.decompress(Path(told["path"]).read_bytes())
    elsewhere = rowcall(environment, "archive", "export", "2020-05", "--to", str(tmp_path / "there")).stdout
    assert elsewhere.startswith(f"1 run of 2020-05 is in {tmp_path}/there/2020/05/runs-2020-05-2")
    refused = rowcall(environment, "archive", "drop", "2020-05")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert rowcall(environment, "archive", "drop", "2020-05", "--yes").stdout == "2020-05 is dropped, with 1 run\n"
    assert rowcall(environment, "runs", "show", str(run_id)).returncode == 1
    with database.transaction(environment["DATABASE_URL"]) as connection:
        [row] = fetch_all(connection, "SELECT action, after FROM rowcall.audit_log ORDER BY id DESC LIMIT 1")
    assert row == {"action": "prune", "after": {"archived_month": "2020-05"}}


def test_a_month_that_postgresql_has_counted_needs_no_note(environment: dict[str, str]) -> None:
    pruned(environment)
    with database.transaction(environment["DATABASE_URL"]) as connection:
        fetch_all(connection, "ANALYZE rowcall.archived_runs")
    assert rowcall(environment, "archive", "list").stderr == ""


def test_a_month_is_exported_in_the_format_of_the_policy_unless_another_is_asked_for(
    environment: dict[str, str], tmp_path: Path
) -> None:
    pruned(environment)
    assert ".csv.gz (" in rowcall(environment, "archive", "export", "2020-05").stdout
    policy = 'archive = "table", keep_archive_months = 1200, export_archive = "parquet"'
    (tmp_path / "definitions.toml").write_text(DEFINITIONS.replace('archive = "table"', policy))
    applied = rowcall(environment, "definitions", "apply", str(tmp_path / "definitions.toml"))
    assert applied.returncode == 0, applied.stderr
    assert ".parquet (" in rowcall(environment, "archive", "export", "2020-05").stdout
    assert ".csv.gz (" in rowcall(environment, "archive", "export", "2020-05", "--format", "csv").stdout


def test_a_list_on_a_terminal_marks_archived_runs(environment: dict[str, str]) -> None:
    assert rowcall(environment, "enqueue", "noop").returncode == 0
    pruned(environment)
    lines = on_terminal(environment, "runs", "list")
    assert [line.split()[1:3] for line in lines[1:3]] == [["noop", "dead*"], ["noop", "queued"]]
    assert lines[3:] == ["* in the archive: can be read and cloned"]
    assert "*" not in rowcall(environment, "runs", "list").stdout


@pytest.mark.parametrize("command", [["export"], ["drop", "--yes"]])
def test_a_month_that_is_none_or_has_no_runs_is_refused(environment: dict[str, str], command: list[str]) -> None:
    name, *options = command
    wrong = rowcall(environment, "archive", name, "2020-13", *options)
    assert (wrong.returncode, "'2020-13' is not a month: write it as 2026-03" in wrong.stderr) == (2, True)
    missing = rowcall(environment, "archive", name, "2020-05", *options)
    assert (missing.returncode, missing.stderr) == (
        1,
        "rowcall: the archive table has no runs of 2020-05; `rowcall archive list` shows the months that it has\n",
    )


def test_a_month_that_somebody_reads_is_not_dropped_and_nobody_waits_long(environment: dict[str, str]) -> None:
    run_id = pruned(environment)
    with database.transaction(environment["DATABASE_URL"]) as connection:
        fetch_all(connection, "SELECT FROM rowcall.archived_runs")
        busy = rowcall(environment, "archive", "drop", "2020-05", "--yes")
    assert busy.returncode == 1
    assert busy.stderr == (
        "rowcall: 2020-05 was not dropped from the archive table, because a transaction is reading the table: try"
        " again later\n"
    )
    assert rowcall(environment, "runs", "show", str(run_id)).returncode == 0


def test_an_archived_run_is_shown_explained_and_cloned(environment: dict[str, str]) -> None:
    run_id = pruned(environment)
    shown = rowcall(environment, "runs", "show", str(run_id)).stdout
    assert '{"n": 1}' in shown
    assert "The run is in the archive: it can be read and cloned." in shown
    assert json.loads(rowcall(environment, "runs", "show", str(run_id), "--json").stdout)["archived"] is True
    assert "it is in the archive" in rowcall(environment, "runs", "explain", str(run_id)).stdout
    assert [run["id"] for run in json.loads(rowcall(environment, "runs", "list", "--json").stdout)] == [run_id]
    retried = rowcall(environment, "runs", "retry", str(run_id))
    assert (retried.returncode, "(it is in the archive): retry is not allowed" in retried.stderr) == (1, True)
    assert rowcall(environment, "runs", "clone", str(run_id)).returncode == 0


def test_a_role_without_rights_drops_nothing(environment: dict[str, str]) -> None:
    pruned(environment)
    url = environment["DATABASE_URL"]
    with role(url, "reader") as reader:
        with database.transaction(url) as connection:
            fetch_all(connection, f"GRANT USAGE ON SCHEMA rowcall TO {reader.name}")
            fetch_all(connection, f"GRANT SELECT ON ALL TABLES IN SCHEMA rowcall TO {reader.name}")
        refused = rowcall({**environment, "DATABASE_URL": reader.url}, "archive", "drop", "2020-05", "--yes")
    assert refused.returncode == 1
    assert "permission denied for table archived_runs" in refused.stderr
