"""Child processes end with their parent, however it ends and whatever signals it ignored."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.processes import gone, wait_until

# A background process, as `nohup` and `&` leave it; its child does not handle signals yet.
PARENT = """
import signal, subprocess, sys
from rowcall.base.child_processes import dies_with_us
number = signal.Signals[sys.argv[1]]
signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "600"], preexec_fn=dies_with_us(number))
print(child.pid, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("number", ["SIGQUIT", "SIGTERM"])
def test_a_child_ends_with_its_killed_parent_that_had_ignored_the_signal(number: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, number], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        wait_until(lambda: gone(child), "the child is gone")
