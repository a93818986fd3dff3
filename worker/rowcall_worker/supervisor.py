"""The supervisor: runs several worker processes for `rowcall worker run --processes N`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

from rowcall.base.child_processes import dies_with_us, own_command, stop_signals
from rowcall.base.errors import RowcallError

# How often to check whether a process has ended by itself.
POLL_SECONDS = 0.1


def supervise_processes(options: Sequence[Sequence[str]]) -> None:
    """Start this command line once for each of these further options, pass signals on, and wait for all to end.

    If a process ends by itself, stop the others too, so that the service manager restarts all of them.
    """
    single = own_command(*sys.argv[1:], "--processes", "1")
    children = [
        subprocess.Popen([*single, *own], preexec_fn=dies_with_us(signal.SIGTERM), start_new_session=True)
        for own in options
    ]
    asked = _pass_on(children)
    while all(child.poll() is None for child in children):
        time.sleep(POLL_SECONDS)  # subprocess cannot wait for any one of several children
    if not asked:
        for child in children:
            child.terminate()
    failed = [code for code in [child.wait() for child in children] if code]
    if failed and not asked:
        code = failed[0]
        why = f"was killed by signal {-code}" if code < 0 else f"ended with {code}; see the error above"
        raise RowcallError(f"a worker process {why}")


def _pass_on(children: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """Pass the signals that stop a worker to the children; the returned list collects the signals passed."""
    passed: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        passed.append(number)
        for child in children:
            child.send_signal(number)

    for number in stop_signals():
        signal.signal(number, pass_on)
    return passed
