"""`rowcall runs tail` and the end of the log in `rowcall runs show`."""

from __future__ import annotations

import json
import signal

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.cli.main import INTERRUPTED
from rowcall.status import Status
from tests.support.live_terminal import live_terminal
from tests.support.processes import rowcall, running, wait_until
from tests.support.rows import run_in
from tests.support.run_log import insert_lines
from tests.support.server import let_connect


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """Return an environment with a database for the test."""
    return {**environment, "DATABASE_URL": fresh_url}


def made(environment: dict[str, str], status: Status, *numbers: int, text: str = "line ") -> int:
    """Insert a run with these lines."""
    with database.transaction(environment["DATABASE_URL"]) as connection:
        run_id: int = run_in(connection, status)["id"]
        insert_lines(connection, run_id, numbers, text)
    return run_id


def test_tail_prints_all_lines_and_says_how_many_were_left_out(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.RUNNING, *range(3, 304))
    tail = rowcall(environment, "runs", "tail", str(run_id))
    assert (tail.returncode, tail.stderr) == (0, "2 lines were left out: a run keeps only its newest lines\n")
    printed = tail.stdout.splitlines()
    assert [line.split("  ")[-1].strip() for line in printed] == [f"line {number}" for number in range(3, 304)]
    assert "  1  info     line 3" in printed[0]


def test_a_program_gets_one_object_for_each_line(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.SUCCEEDED, 1, 2)
    told = [
        json.loads(line) for line in rowcall(environment, "runs", "tail", str(run_id), "--json").stdout.splitlines()
    ]
    assert [(line["line_no"], line["level"], line["text"]) for line in told] == [
        (1, "info", "line 1"),
        (2, "info", "line 2"),
    ]


def test_what_would_control_the_terminal_is_escaped_and_a_traceback_is_indented(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.DEAD, 1, text="broken\x1b[31m\nTraceback\a ")
    for command in ("tail", "show"):
        shown = rowcall(environment, "runs", command, str(run_id)).stdout
        assert "info     broken\\x1b[31m\n    Traceback\\x07 1\n" in shown


def test_a_run_that_logged_nothing_says_so_and_one_that_is_not_there_is_refused(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.SUCCEEDED)
    quiet = rowcall(environment, "runs", "tail", str(run_id))
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", f"run {run_id} has logged nothing\n")
    assert "log" not in rowcall(environment, "runs", "show", str(run_id)).stdout
    assert rowcall(environment, "runs", "tail", "999").returncode == 1


def test_follow_prints_new_lines_until_the_run_ends(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.RUNNING, 1)
    with running(environment, "runs", "tail", str(run_id), "--follow") as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline().endswith("line 1\n")
        with database.transaction(environment["DATABASE_URL"]) as connection:
            insert_lines(connection, run_id, [2])
            end = "status = 'succeeded', finished_at = now(), locked_by = NULL, locked_until = NULL"
            fetch_all(connection, f"UPDATE rowcall.job_runs SET {end} WHERE id = %(id)s", {"id": run_id})
        assert tail.stdout.readline().endswith("line 2\n")
        assert (tail.wait(), tail.stdout.read()) == (0, "")


def test_follow_says_how_many_lines_of_a_flood_were_left_out(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.RUNNING, 1)
    with running(environment, "runs", "tail", str(run_id), "--follow") as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline().endswith("line 1\n")
        with database.transaction(environment["DATABASE_URL"]) as connection:
            # A worker has written 2 to 1,500, and kept the newest.
            fetch_all(connection, "DELETE FROM rowcall.run_logs")
            insert_lines(connection, run_id, [1500])
        assert tail.stdout.readline() == "1,498 lines were left out: a run keeps only its newest lines\n"
        assert tail.stdout.readline().endswith("line 1500\n")


def test_follow_goes_on_when_the_database_was_away(
    environment: dict[str, str], fresh_url: str, server_url: str
) -> None:
    run_id = made(environment, Status.RUNNING, 1)
    with live_terminal(environment, "runs", "tail", str(run_id), "--follow") as terminal:
        terminal.wait_for("line 1$")
        let_connect(server_url, fresh_url, allowed=False)
        terminal.wait_for("^the database is not available: no connection to ", "trying again until Ctrl-C")
        let_connect(server_url, fresh_url, allowed=True)
        with database.transaction(fresh_url) as connection:
            insert_lines(connection, run_id, [2])
        terminal.wait_for("line 2$")
        terminal.type("\x03")
        assert terminal.wait_for_end() == INTERRUPTED
        assert terminal.printed.count("the database is not available") == 1


def test_ctrl_c_ends_follow_quietly(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.RUNNING, 1)
    with running(environment, "runs", "tail", str(run_id), "--follow") as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline().endswith("line 1\n")
        tail.send_signal(signal.SIGINT)
        wait_until(lambda: tail.poll() is not None, "tail has ended")
        assert (tail.returncode, tail.stdout.read().strip()) == (INTERRUPTED, "")


def test_follow_says_that_it_waits_for_a_run_that_has_not_started(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.QUEUED)
    with running(environment, "runs", "tail", str(run_id), "--follow") as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline() == f"run {run_id} is queued; waiting until it ends\n"
        with database.transaction(environment["DATABASE_URL"]) as connection:
            queue.cancel(connection, run_id, Operator("a test"))
        assert (tail.wait(), tail.stdout.read()) == (0, f"run {run_id} has logged nothing\n")


def test_show_prints_the_last_lines_and_how_to_see_all(environment: dict[str, str]) -> None:
    run_id = made(environment, Status.DEAD, *range(1, 31))
    shown = rowcall(environment, "runs", "show", str(run_id)).stdout
    hint, *lines = shown[shown.index("the end of its log") :].splitlines()
    assert hint == f"the end of its log; `rowcall runs tail {run_id}` prints all of it:"
    assert [line.split("  ")[-1].strip() for line in lines] == [f"line {number}" for number in range(21, 31)]
    told = json.loads(rowcall(environment, "runs", "show", str(run_id), "--json").stdout)
    assert [line["line_no"] for line in told["log_end"]] == [*range(21, 31)]
