"""`rowcall up` on a terminal: a live view of services, runs and effects, which leaves the terminal as it was."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import termios
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rowcall.base import database
from rowcall.base.child_processes import own_command
from rowcall.base.clock import elapsed
from rowcall.cli.up.look import Look, Seen
from rowcall.cli.up.picture import Frame
from rowcall.queue import enqueue
from tests.support.processes import LIMIT_SECONDS, living_with, wait_until

OTHER_SCREEN, BACK, HIDE, SHOW = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25l", "\x1b[?25h"
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal of 100 columns, on which `rowcall up` runs."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 100))
        command = own_command("up", "--yes", "--port", "0")
        # These would hide the size of the terminal.
        outer = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command, env={**outer, **environment}, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True
        )
        os.close(theirs)
        self.seen = ""

    def read_until(self, text: str) -> None:
        """Read until the terminal has shown this text."""
        until = elapsed() + LIMIT_SECONDS
        while text not in CODES.sub("", self.seen):
            assert elapsed() < until, f"{text!r} was not shown, but {CODES.sub('', self.seen)[-4000:]}"
            self.seen += os.read(self._ours, 65536).decode(errors="replace")

    def end(self) -> tuple[int, str]:
        """Read until the end; return the exit code and what was written to standard error."""
        while True:
            try:
                self.seen += os.read(self._ours, 65536).decode(errors="replace")
            except OSError:  # how Linux says that the other end is closed
                break
        _, errors = self.process.communicate(timeout=LIMIT_SECONDS)
        os.close(self._ours)
        return self.process.returncode, errors

    @property
    def left(self) -> list[str]:
        """What stays on the terminal after the view."""
        return [line.rstrip() for line in CODES.sub("", self.seen.rpartition(BACK)[2]).splitlines()]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield an environment with its own home; no process that was started in it may outlive the test."""
    yield {"ROWCALL_HOME": str(tmp_path / "home"), "TERM": "xterm-256color"}
    for pid, line in living_with(str(tmp_path)).items():
        if " up " in line:
            os.kill(pid, signal.SIGKILL)  # after a failure
    wait_until(lambda: not living_with(str(tmp_path)), "none of its processes is alive")


def test_the_view_shows_the_demo_and_leaves_the_terminal_as_it_was(home: dict[str, str]) -> None:
    terminal = Terminal(home)
    terminal.read_until("declined on purpose: a retry succeeds")
    terminal.read_until("applied")
    terminal.read_until("Next, in another terminal in this folder:")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == (0, "")
    assert terminal.seen.index(OTHER_SCREEN) < terminal.seen.index(BACK)
    assert terminal.seen.rindex(HIDE) < terminal.seen.rindex(SHOW)
    assert terminal.left[-1] == "Rowcall is down."
    picture = "\n".join(terminal.left)
    assert re.search(r"^PostgreSQL +\d+", picture, re.M)
    assert re.search(r"^API +http://127\.0\.0\.1:\d+", picture, re.M)
    assert re.search(r"^run \d+ +charge_invoice +dead +declined on purpose", picture, re.M)
    assert re.search(r"^Runs .* 1 dead ", picture, re.M)
    # It is down, so there is nothing to type.
    assert "Next," not in picture
    assert "worker started" in Path(home["ROWCALL_HOME"], "log", "worker.log").read_text()


def test_a_service_that_ends_by_itself_is_told_with_the_end_of_its_log(home: dict[str, str], fresh_url: str) -> None:
    terminal = Terminal({**home, "DATABASE_URL": fresh_url})
    terminal.read_until("none of your own")
    [worker] = [pid for pid, line in living_with(home["ROWCALL_HOME"]).items() if "worker run" in line]
    os.kill(worker, signal.SIGKILL)
    code, errors = terminal.end()
    assert code == 1
    assert "`rowcall worker run --grace 2.0 --queues rowcall_up` ended with -9; " in errors
    assert "worker started" in errors
    assert errors.endswith(f"see {home['ROWCALL_HOME']}/log/worker.log\n")
    assert terminal.seen.rindex(HIDE) < terminal.seen.rindex(SHOW)


def test_a_dumb_terminal_gets_lines(home: dict[str, str], fresh_url: str) -> None:
    terminal = Terminal({**home, "TERM": "dumb", "DATABASE_URL": fresh_url})
    terminal.read_until("Ctrl-C stops everything.")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end()[0] == 0
    assert "\x1b" not in terminal.seen


NOW = datetime(2026, 3, 29, 12, tzinfo=UTC)
FRAME = Frame({"API": "http://127.0.0.1:8000"}, {7: "declined on purpose"}, ["Next:", "  rowcall runs show 7"])


def run(run_id: int, status: str, **more: Any) -> dict[str, Any]:
    plain = {"progress": None, "error_type": None, "last_error": None, "finished_at": None, "run_at": NOW}
    return {"id": run_id, "job_type": "charge_invoice", "status": status, **plain, **more}


def drawn(seen: Seen | None, columns: int = 80, lines: int = 24, away: bool = False) -> list[str]:
    console = Console(width=columns, height=lines, file=StringIO(), record=True)
    console.print(FRAME.picture(seen, lines, away))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_each_run_says_what_matters_in_its_status() -> None:
    runs = [
        run(7, "dead", error_type="Declined", last_error="no"),
        run(8, "failed", error_type="SmtpDown", last_error="no\nroute"),
        run(9, "running", progress={"share": 0.25, "note": ""}),
        run(10, "succeeded", finished_at=NOW - timedelta(minutes=3)),
        run(11, "queued", run_at=NOW + timedelta(hours=5)),
    ]
    lines = drawn(Seen(NOW, {"dead": 1, "running": 1}, runs))
    told = [re.split(" {2,}", line)[2:] for line in lines if line.startswith("run ")]
    assert told == [
        ["dead", "declined on purpose"],
        ["failed", "SmtpDown: no route"],
        ["running", "25%"],
        ["succeeded", "3 min ago"],
        ["queued", "in 5 h"],
    ]
    assert "Runs   0 queued  1 running  0 succeeded  0 failed  1 dead  0 cancelled" in lines


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (100, 30), (40, 18), (200, 60)])
def test_the_picture_fits_the_terminal_whatever_is_in_it(columns: int, lines: int) -> None:
    runs = [run(number, "dead", error_type="E", last_error="long " * 100) for number in range(100, 120)]
    effect = {"kind": "sent_emails", "key": "k" * 200, "state": "unknown", "refusal": "why " * 100, "reference": None}
    shown = drawn(Seen(NOW, {}, runs, [effect] * 20), columns, lines)
    assert len(shown) <= lines
    assert max(map(len, shown)) <= columns
    assert shown[-1] == "  rowcall runs show 7"


def test_before_the_first_run_it_says_so() -> None:
    lines = drawn(Seen(NOW))
    assert "there are no runs yet" in lines
    assert "none yet: mails, payments, webhooks and files appear here" in lines


def test_while_the_database_is_away_the_last_picture_stays(fresh_url: str) -> None:
    look = Look(fresh_url)
    with database.transaction(fresh_url) as connection:
        enqueue(connection, "noop", {})
    seen = look.take()
    assert seen is not None
    assert [one["status"] for one in seen.runs] == ["queued"]
    with database.transaction(fresh_url) as connection:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rowcall up'"
        database.fetch_all(connection, others)
    assert look.take() is None
    lines = drawn(seen, away=True)
    assert "The database does not answer; trying again ..." in lines
    assert any(line.startswith("run ") for line in lines)
    assert look.take() is not None
    look.close()
