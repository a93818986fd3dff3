"""`rowcall up` in a folder in which it is running already."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.cli.test_up import Up, beside, home
from tests.support.live_terminal import live_terminal
from tests.support.processes import living_with, rowcall

__all__ = ["beside", "home"]  # fixtures


def test_a_second_one_says_that_it_runs_already_and_starts_nothing(beside: dict[str, str]) -> None:
    # One process of the API, because a second one may start after the first has answered.
    up = Up({**beside, "ROWCALL_API_WORKERS": "1"}, "--port", "0")
    before = living_with(beside["ROWCALL_HOME"])
    refused = rowcall(beside, "up", "--yes", "--port", "0")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"rowcall: `rowcall up` is already running in {beside['ROWCALL_HOME']} (process {up.process.pid}, API {up.api}"
        f"): use that one, or end it with Ctrl-C in its terminal or `kill {up.process.pid}`; with another ROWCALL_HOME,"
        " a second one can run alongside it\n"
    )
    assert living_with(beside["ROWCALL_HOME"]) == before
    up.end(signal.SIGKILL)
    # Nothing of a killed one is in the way.
    Up(beside, "--port", "0").end(signal.SIGINT)


def test_a_second_one_on_a_terminal_leaves_the_logs_of_the_first_alone(beside: dict[str, str]) -> None:
    up = Up(beside, "--port", "0")
    with live_terminal(beside, "up", "--yes", "--port", "0") as terminal:
        assert terminal.wait_for_end() == 1
        assert "is already running in" in terminal.printed
    assert not Path(beside["ROWCALL_HOME"], "log").exists()
    up.end(signal.SIGINT)
