"""`rowcall up` on a terminal: what a person sees, while it starts, runs and ends, on a window of any size."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from rowcall.base import database
from rowcall.base.database import connect
from tests.cli.test_up import beside, home
from tests.support.live_terminal import LiveTerminal, live_terminal
from tests.support.processes import LIMIT_SECONDS, NOHUP, living_with, rowcall

__all__ = ["beside", "home"]  # fixtures

UP = ("up", "--yes", "--port", "0")

# The last line of the view once it is whole.
WHOLE = r"^  open http://127\.0\.0\.1:\d+/admin/link/[A-Za-z0-9_-]{16}$"


def whole_view(terminal: LiveTerminal) -> list[str]:
    """The lines from the first to the last line of the view, which the screen shows once."""
    lines = terminal.wait_for("^Rowcall is up", WHOLE)
    [first] = [number for number, line in enumerate(lines) if line.startswith("Rowcall is up.")]
    [last] = [number for number, line in enumerate(lines) if re.search(WHOLE, line)]
    return lines[first : last + 1]


def assert_the_terminal_is_as_before(terminal: LiveTerminal) -> None:
    assert not terminal.screen.cursor.hidden
    assert terminal.echoes()
    assert b"\x1b[?1049" not in terminal.raw, "there is no other screen"
    # Nothing of the view's services and commands stays: they are down.
    assert not [line for line in terminal.lines if line.startswith(("Rowcall is up", "Next,")) or "PostgreSQL" in line]


def test_a_person_sees_the_demo_at_work_and_at_a_later_start_that_it_is_there(home: dict[str, str]) -> None:
    with live_terminal(home, *UP) as terminal:
        terminal.wait_for("^Rowcall is starting", "PostgreSQL +starting", "worker +starting")
        terminal.wait_for(r"^Runs .*\d+ succeeded .*1 dead", "^ +6 .* on attempt 2", "sent_.*applied|mail .*applied")
        view = "\n".join(terminal.wait_for("^Rowcall is up", r"^● +worker +waiting for runs$", WHOLE))
        assert re.search(r"^● +PostgreSQL +\d+\.\d+, data in \S+$", view, re.MULTILINE)
        assert re.search(r"^● +API +http://127\.0\.0\.1:\d+ +a key for it is in /\S+$", view, re.MULTILINE)
        assert re.search(r"demo +added 20 users with orders and invoices; enqueued 9 runs$", view, re.MULTILINE)
        [declined] = re.findall(
            r"^Run (\d+): this charge is declined on purpose: `.*rowcall runs retry \1`", view, re.M
        )
        assert re.search(r"^  export ROWCALL_APP=rowcall_example\n  .*rowcall enqueue noop ", view, re.MULTILINE)
        assert re.search(r"""^  .*rowcall enqueue noop '{"hello": "world"}'$""", view, re.MULTILINE)
        assert re.search(rf"^  .*rowcall runs show {declined}$", view, re.MULTILINE)
        assert "curl" not in view
        assert Path(home["ROWCALL_HOME"], "api_key").read_text().strip() not in terminal.printed
        # A run that fails on purpose causes no warning.
        assert "worker:" not in terminal.printed

        terminal.type("typed\n")
        for columns, lines in ((80, 24), (60, 20), (120, 40)):
            terminal.resize(columns, lines)
            terminal.wait_for(f"^Rowcall is up. {{{columns - 39}}}Ctrl-C stops everything.$")
            assert max(map(len, whole_view(terminal))) < columns
        assert "typed" not in terminal.printed

        example = {**home, "ROWCALL_APP": "rowcall_example"}
        assert rowcall(example, "enqueue", "charge_invoice", '{"invoice_id": 999999}').returncode == 0
        terminal.wait_for("^worker: warning run dead .*InvoiceNotFound", "charge_invoice +dead +InvoiceNotFound: there")
        link = whole_view(terminal)[-1].removeprefix("  open ")
        with urlopen(link, timeout=LIMIT_SECONDS) as page:  # noqa: S310 - our own API
            assert page.status == 200
        terminal.wait_for(f"^  open {link.partition('/link/')[0]}$")
        terminal.type("\x03")
        assert terminal.wait_for_end() == 0
        assert_the_terminal_is_as_before(terminal)
        left = [line for line in terminal.lines if line]
        assert re.search(r"^Runs .* succeeded +2 dead$", "\n".join(left), re.MULTILINE)
        # The path of the data may need a second line on the screen.
        assert terminal.printed.rstrip().rpartition("\n")[2].startswith("Rowcall has stopped.")

    with live_terminal(home, *UP, columns=80, lines=24) as later:
        later.wait_for("demo +its users and today's runs exist already: nothing is added", "^Runs .* 2 dead")
        later.wait_for(f"^Run {declined}: this charge is declined on purpose")
        [worker] = [pid for pid, line in living_with(home["ROWCALL_HOME"]).items() if "worker run" in line]
        os.kill(worker, signal.SIGKILL)
        assert later.wait_for_end() == 1
        assert_the_terminal_is_as_before(later)
        assert (
            "rowcall: `rowcall worker run --grace 2.0` was killed by signal 9; start\n`rowcall up` again\n"
            in later.printed
        )
    logs = Path(home["ROWCALL_HOME"], "log")
    assert "worker started" in (logs / "worker.log").read_text()
    assert "run dead" in (logs / "worker.log.1").read_text()


def test_while_the_database_is_away_the_view_says_so_and_goes_on(beside: dict[str, str], fresh_url: str) -> None:
    name = fresh_url.rpartition("/")[2]
    with live_terminal(beside, *UP, columns=80, lines=24) as terminal:
        terminal.wait_for("serves only queue rowcall_up", "^Runs +1 succeeded$", WHOLE)
        others = connect(fresh_url.removesuffix(name) + "postgres")
        others.autocommit = True
        database.fetch_all(others, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        database.fetch_all(
            others, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %(name)s", {"name": name}
        )
        terminal.wait_for(
            r"^● +PostgreSQL +unavailable for \d+ s: ",
            "worker +waiting for the database",
            "^Runs +1 succeeded$",
            WHOLE,
        )
        terminal.wait_for("^worker: (warning|error) database lost")
        database.fetch_all(others, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        terminal.wait_for("PostgreSQL +.*DATABASE_URL$", "worker +waiting for runs")
        others.close()
        terminal.type("\x03")
        assert terminal.wait_for_end() == 0
        assert_the_terminal_is_as_before(terminal)


def test_the_error_of_a_service_is_printed_whole(beside: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "job_types.py").touch()
    (tmp_path / "broken" / "handlers.py").write_text(
        "def load():\n    raise OSError('no ' + 'paper ' * 40)\n\n\nload()\n"
    )
    with live_terminal({**beside, "ROWCALL_APP": "broken", "PYTHONPATH": str(tmp_path)}, *UP) as terminal:
        assert terminal.wait_for_end() == 1
        assert_the_terminal_is_as_before(terminal)
    # A terminal wraps a long line; who copies it gets one line.
    assert re.search(
        f"worker: .*broken/handlers.py, line 2: OSError: no {'paper ' * 40}$", terminal.printed, re.MULTILINE
    )
    assert re.search(
        "rowcall: `rowcall worker run .*` exited with code 1; see above, and the\\s+logs\\s+in", terminal.printed
    )


def test_ctrl_c_ends_a_start_that_is_not_finished(beside: dict[str, str]) -> None:
    with live_terminal(beside, *UP) as terminal:
        terminal.wait_for("PostgreSQL +starting")
        terminal.type("\x03\x03")
        assert terminal.wait_for_end() == 0
        assert_the_terminal_is_as_before(terminal)
        assert "Rowcall has stopped.  Its logs are in " in terminal.printed


TWO_SIGNALS = """
import os, signal
from rowcall.cli.up.stop import Stop, listen_to_signals
listen_to_signals()
try:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
except Stop:
    print("stopped")
"""


def test_of_two_signals_at_once_the_second_is_ignored_without_a_word() -> None:
    ended = subprocess.run([sys.executable, "-c", TWO_SIGNALS], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "stopped\n", "")


IN_A_WRITE = """
import io, signal, sys
from rich.text import Text
from rowcall.cli.up.live.screen import Screen
from rowcall.cli.up.stop import Stop, listen_to_signals

class Terminal(io.StringIO):
    def write(self, text):
        written = super().write(text)
        if "the view" in text:
            signal.raise_signal(signal.SIGINT)
        return written

out, sys.stdout = sys.stdout, Terminal()
listen_to_signals()
screen = Screen(Text("the view"))
try:
    screen.open()
except Stop:
    screen.close()
    print(sys.stdout.getvalue().count("the view"), file=out)
"""


def test_a_signal_that_comes_in_the_middle_of_drawing_leaves_nothing_of_the_view() -> None:
    ended = subprocess.run([sys.executable, "-c", IN_A_WRITE], capture_output=True, text=True, check=False)
    # rich draws it once more before it removes it.
    assert (ended.returncode, ended.stdout) == (0, "2\n"), ended.stderr


HANGUP = """
import os, signal
from rowcall.cli.up.stop import listen_to_signals
listen_to_signals()
os.kill(os.getpid(), signal.SIGHUP)
print("alive")
"""


def test_started_by_nohup_it_outlives_its_terminal() -> None:
    ended = subprocess.run([*NOHUP, sys.executable, "-c", HANGUP], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "alive\n", "")


@pytest.mark.parametrize("plain", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_who_wants_plain_lines_gets_them_on_a_terminal_too(beside: dict[str, str], plain: dict[str, str]) -> None:
    with live_terminal({**beside, **plain}, *UP, lines=50) as terminal:
        terminal.wait_for("^Starting PostgreSQL, the API and a worker", "^Ctrl-C stops everything.$")
        terminal.type("\x03")
        assert terminal.wait_for_end() == 0
        # Nothing is drawn in place; only a warning in the log has colours.
        assert re.findall(rb"\x1b\[[^m]*[^m\d;]", terminal.raw) == []
        assert terminal.printed.endswith("\n\nRowcall has stopped.\n")
    assert not Path(beside["ROWCALL_HOME"], "log").exists()


def test_plain_lines_say_once_where_the_local_server_is(home: dict[str, str]) -> None:
    with live_terminal({**home, "TERM": "dumb", "ROWCALL_APP": ""}, *UP, lines=50) as terminal:
        terminal.wait_for("^Ctrl-C stops everything.$")
        terminal.type("\x03")
        assert terminal.wait_for_end() == 0
        assert terminal.printed.count("using the local PostgreSQL in") == 1
