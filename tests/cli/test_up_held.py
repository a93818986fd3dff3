"""`rowcall up` where an operator has paused a queue."""

from __future__ import annotations

import re
import signal

import pytest

from rowcall.base import settings
from rowcall.base.errors import RowcallError
from rowcall.cli.up import processes
from tests.cli.test_up import MAIL_SERVER, Up, beside, home
from tests.support.processes import rowcall

__all__ = ["beside", "home"]  # fixtures


def test_it_is_up_though_the_first_runs_queue_is_paused(home: dict[str, str]) -> None:
    environment = {**home, **MAIL_SERVER}
    up = Up(environment, "--port", "0")
    assert rowcall(environment, "queues", "pause", "default").returncode == 0
    up.end(signal.SIGINT)
    again = Up(environment, "--port", "0")
    [run_id] = re.findall(r"demo run +(\d+) \(noop\) succeeded", again.said)
    shown = rowcall(environment, "runs", "show", run_id).stdout
    again.end(signal.SIGINT)
    assert re.search("^queue +rowcall_up$", shown, re.MULTILINE)


def test_a_first_run_that_waits_for_too_long_says_why(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FIRST_RUN_SECONDS", 0.1)
    with pytest.raises(RowcallError, match="is queued after 0.1 seconds: no live worker takes noop from queue"):
        processes.first_run(settings.read({}), fresh_url, [], processes.QUEUE)
