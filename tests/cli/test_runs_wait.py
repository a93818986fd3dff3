"""`rowcall runs show --wait`: it shows a run that has ended, and its exit code says how."""

from __future__ import annotations

import json
import signal

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.cli.main import INTERRUPTED
from rowcall.status import Status
from tests.support.live_terminal import live_terminal
from tests.support.processes import LIMIT_SECONDS, rowcall, running
from tests.support.rows import run_in
from tests.support.server import let_connect


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """Return an environment with a database for the test."""
    return {**environment, "DATABASE_URL": fresh_url}


def made(environment: dict[str, str], status: Status) -> int:
    with database.transaction(environment["DATABASE_URL"]) as connection:
        run_id: int = run_in(connection, status)["id"]
    return run_id


def cancel(environment: dict[str, str], run_id: int) -> None:
    with database.transaction(environment["DATABASE_URL"]) as connection:
        queue.cancel(connection, run_id, Operator("a test"))


@pytest.mark.parametrize(("status", "code"), [(Status.SUCCEEDED, 0), (Status.DEAD, 1), (Status.CANCELLED, 1)])
def test_a_run_that_has_ended_is_shown_at_once_and_the_exit_code_says_how(
    environment: dict[str, str], status: Status, code: int
) -> None:
    run_id = made(environment, status)
    shown = rowcall(environment, "runs", "show", str(run_id), "--wait", "--json")
    assert (shown.returncode, shown.stderr) == (code, "")
    assert shown.stdout == rowcall(environment, "runs", "show", str(run_id), "--json").stdout


def test_when_the_time_is_up_the_run_is_shown_as_it_is(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.QUEUED)
    shown = rowcall(environment, "runs", "show", str(run_id), "--wait", "0.1s", "--json")
    assert (shown.returncode, json.loads(shown.stdout)["status"]) == (1, "queued")
    assert shown.stderr.splitlines() == [
        f"run {run_id} is queued; waiting until it ends, at most 0.1 s",
        f"run {run_id} has not ended within 0.1 s: it is queued",
    ]


def test_a_run_that_a_worker_performs_meanwhile_is_shown_when_it_has_succeeded(environment: dict[str, str]) -> None:
    run_id = rowcall(environment, "enqueue", "noop", "--json").stdout
    with running(environment, "runs", "show", str(json.loads(run_id)["run_id"]), "--wait", "--json") as waiting:
        assert rowcall(environment, "worker", "once").returncode == 0
        told, _ = waiting.communicate(timeout=LIMIT_SECONDS)
    *_, shown = told.splitlines()  # after the line that says what it waits for
    assert (waiting.returncode, json.loads(shown)["status"]) == (0, "succeeded")


def test_ctrl_c_ends_it_quietly(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.QUEUED)
    with live_terminal(environment, "runs", "show", str(run_id), "--wait", "1h") as terminal:
        terminal.wait_for("run 1 is queued; waiting until it ends")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.wait_for_end() == INTERRUPTED
        assert "Traceback" not in terminal.printed


def test_it_waits_on_while_the_database_is_away(environment: dict[str, str], fresh_url: str, server_url: str) -> None:
    run_id = made(environment, Status.QUEUED)
    with live_terminal(environment, "runs", "show", str(run_id), "--wait") as terminal:
        terminal.wait_for("waiting until it ends")
        let_connect(server_url, fresh_url, allowed=False)
        terminal.wait_for("^the database is not available: no connection to ", "still waiting")
        let_connect(server_url, fresh_url, allowed=True)
        cancel(environment, run_id)
        terminal.wait_for("noop +cancelled")
        assert terminal.wait_for_end() == 1


@pytest.mark.parametrize("wait", ["soon", "11 years", "9" * 5000])
def test_what_is_no_duration_is_refused(environment: dict[str, str], wait: str) -> None:
    refused = rowcall(environment, "runs", "show", "1", f"--wait={wait}")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"'{wait}' is not a duration: write 30s or '5 minutes'" in refused.stderr


def test_a_number_alone_is_seconds_as_in_http(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.QUEUED)
    shown = rowcall(environment, "runs", "show", str(run_id), "--wait", "0", "--json")
    assert (shown.returncode, json.loads(shown.stdout)["status"]) == (1, "queued")
    ended = made(environment, Status.SUCCEEDED)
    assert rowcall(environment, "runs", "show", str(ended), "--wait", "30").returncode == 0


def test_an_id_that_the_option_took_as_its_value_is_asked_for(environment: dict[str, str]) -> None:
    refused = rowcall(environment, "runs", "show", "--wait", "21")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Missing argument 'RUN_ID'. --wait took the number after it: put the id before --wait\n" in refused.stderr
    refused = rowcall(environment, "runs", "show")
    assert (refused.returncode, refused.stderr.endswith("Missing argument 'RUN_ID'.\n")) == (2, True)


def test_a_run_that_is_not_there_and_a_database_that_is_away_from_the_start_are_refused(
    environment: dict[str, str],
) -> None:
    assert rowcall(environment, "runs", "show", "999", "--wait").returncode == 1
    nowhere = {**environment, "DATABASE_URL": "postgresql://127.0.0.1:1/none"}
    assert rowcall(nowhere, "runs", "show", "999", "--wait").returncode == 3
