"""`rowcall prune`: housekeeping by hand with the same policy, and what is shown of a pruned run."""

from __future__ import annotations

import gzip
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import Row, fetch_all
from rowcall.status import Status
from tests.support.gate import gate
from tests.support.housekeeping import ended
from tests.support.processes import rowcall, start


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str, tmp_path: Path) -> dict[str, str]:
    """Return an environment with a database for the test."""
    return {**environment, "DATABASE_URL": fresh_url, "ROWCALL_ARCHIVE": str(tmp_path / "archive")}


def sql(environment: dict[str, str], statement: str) -> list[Row]:
    with database.transaction(environment["DATABASE_URL"]) as connection:
        return fetch_all(connection, statement)


def old_runs(environment: dict[str, str]) -> list[int]:
    """Insert two runs without a key, one with a key, and one whose key has expired too."""
    with database.transaction(environment["DATABASE_URL"]) as connection:
        runs = [
            ended(connection, Status.SUCCEEDED, "20 days"),
            ended(connection, Status.DEAD, "100 days", last_error="'it broke'"),
            ended(connection, Status.SUCCEEDED, "20 days", idempotency_key="'one'"),
            ended(connection, Status.SUCCEEDED, "400 days", idempotency_key="'two'", pruned_at="now()"),
        ]
    return [run["id"] for run in runs]


def left(environment: dict[str, str]) -> list[int]:
    return [row["id"] for row in sql(environment, "SELECT id FROM rowcall.job_runs ORDER BY id")]


COUNTS = {
    "looked_at": 4,
    "deleted": 2,
    "made_bare": 1,
    "archived": 0,
    "months_dropped": 0,
    "occurrences": 0,
    "expired": 1,
}


def pruned(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """What the command tells in JSON."""
    ended = rowcall(environment, "prune", "--yes", "--json", *arguments)
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


def test_a_dry_run_counts_and_changes_nothing(environment: dict[str, str]) -> None:
    runs = old_runs(environment)
    assert pruned(environment, "--dry-run") == {**COUNTS, "dry_run": True, "stopped": False}
    told = rowcall(environment, "prune", "--dry-run", "--archive").stdout
    assert told == (
        "nothing was changed; without --dry-run: runs deleted 2, reduced to their keys 1,"
        " archived 3; occurrences deleted 0; keys expired 1\n"
    )
    assert left(environment) == runs
    assert sql(environment, "SELECT * FROM rowcall.audit_log") == []
    assert not Path(environment["ROWCALL_ARCHIVE"]).exists()


def test_it_prunes_and_expires_once_and_is_audited(environment: dict[str, str]) -> None:
    runs = old_runs(environment)
    assert pruned(environment) == {**COUNTS, "dry_run": False, "stopped": False}
    assert left(environment) == [runs[2]]
    assert rowcall(environment, "prune", "--yes").stdout == (
        "runs deleted 0, reduced to their keys 0, archived 0; occurrences deleted 0; keys expired 0\n"
    )
    first, _ = sql(environment, "SELECT action, subject, after FROM rowcall.audit_log ORDER BY id")
    assert (first["action"], first["subject"]) == ("prune", "run")
    assert first["after"]["prune_runs"]["keep_days"]["dead"] == 90


@pytest.mark.parametrize(("arguments", "archived"), [((), True), (("--no-archive",), False)])
def test_the_policy_of_the_definitions_holds_unless_the_command_says_otherwise(
    environment: dict[str, str], arguments: tuple[str, ...], archived: bool
) -> None:
    runs = old_runs(environment)
    sql(
        environment,
        "INSERT INTO rowcall.job_definitions (name, job_type, payload) VALUES"
        """ ('prune_runs', 'prune_runs', '{"keep_days": {"dead": 101}, "archive": true}'),"""
        """ ('expire_keys', 'expire_keys', '{"keep_days": 500}')""",
    )
    told = pruned(environment, *arguments)
    assert (told["deleted"], told["made_bare"], told["archived"], told["expired"]) == (1, 1, 2 * archived, 0)
    assert left(environment) == runs[1:]


def test_what_goes_is_in_the_archive(environment: dict[str, str]) -> None:
    runs = old_runs(environment)
    told = rowcall(environment, "prune", "--yes", "--archive").stdout
    assert "runs deleted 2, reduced to their keys 1, archived 3;" in told
    [path] = Path(environment["ROWCALL_ARCHIVE"]).rglob("*.jsonl.gz")
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [line["id"] for line in lines] == runs[:3]
    assert lines[1]["last_error"] == "it broke"


def test_without_a_place_for_the_archive_it_lies_in_the_home(environment: dict[str, str]) -> None:
    old_runs(environment)
    del environment["ROWCALL_ARCHIVE"]
    assert pruned(environment, "--archive")["archived"] == 3
    assert len(list(Path(environment["ROWCALL_HOME"], "archive").rglob("*.jsonl.gz"))) == 1


def test_a_policy_that_cannot_be_is_told(environment: dict[str, str]) -> None:
    sql(
        environment,
        "INSERT INTO rowcall.job_definitions (name, job_type, payload)"
        """ VALUES ('prune_runs', 'prune_runs', '{"batch": "many"}')""",
    )
    refused = rowcall(environment, "prune", "--yes")
    assert (refused.returncode, refused.stderr) == (1, "rowcall: payload: batch: Not a valid integer\n")


def test_ctrl_c_ends_it_between_two_batches_and_it_tells_what_is_done(environment: dict[str, str]) -> None:
    runs = old_runs(environment)
    sql(
        environment,
        """INSERT INTO rowcall.job_definitions (name, job_type, payload)
        VALUES ('prune_runs', 'prune_runs', '{"batch": 2}')""",
    )
    with gate(environment["DATABASE_URL"]) as barred:
        # The first page has the two runs without a key; the second has the one with a key.
        barred.hold_change("NEW.pruned_at IS NOT NULL AND OLD.pruned_at IS NULL")
        process = start(environment, "prune", "--yes", "--json")
        barred.wait()
        process.send_signal(signal.SIGINT)
        barred.open()
        said, _ = process.communicate(timeout=60)
    told = json.loads(said.splitlines()[0])
    assert (process.returncode, told["stopped"], told["deleted"], told["made_bare"]) == (1, True, 2, 0)
    assert said.splitlines()[1:] == ["stopped before the end; the next prune continues"]
    assert left(environment) == runs[2:]
    assert pruned(environment)["made_bare"] == 1


def test_a_pruned_run_is_shown_with_when_its_details_went_and_with_its_effects(environment: dict[str, str]) -> None:
    run_id = old_runs(environment)[2]
    sql(
        environment,
        "INSERT INTO rowcall.payments (idempotency_key, run_id, lease_no, content_hash, state, applied_at)"
        f" VALUES ('invoice_charge:1', {run_id}, 1, '', 'applied', now())",
    )
    pruned(environment)
    shown = rowcall(environment, "runs", "show", str(run_id)).stdout
    assert "\nIts details were pruned at 2" in shown
    assert "payload, result, errors, attempts and log." in shown
    assert json.loads(rowcall(environment, "runs", "show", str(run_id), "--json").stdout)["payload"] == {}
    [effect] = json.loads(rowcall(environment, "effects", "list", "--run", str(run_id), "--json").stdout)
    assert effect["key"] == "invoice_charge:1"
    refused = rowcall(environment, "runs", "clone", str(run_id))
    assert refused.returncode == 1
    assert "clone is not allowed; allowed: enqueuing a new run with its payload" in refused.stderr
