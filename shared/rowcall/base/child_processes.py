"""Our own children: how they are started, and that they do not outlive us, even when we are killed with SIGKILL."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1  # from linux/prctl.h

# Loaded here and not in the child: between fork and exec as little as possible may happen.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def own_command(*words: str) -> list[str]:
    """The command line of `rowcall` with these arguments, run by the same interpreter.

    -P: a folder that happens to be named as one of our packages is not taken for it.
    """
    return [sys.executable, "-P", "-m", "rowcall.cli", *words]


def die_with(parent: int, number: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent dies; end at once if that has happened already.

    Only Linux can do that; elsewhere a killed parent leaves its children to be stopped by hand.
    """
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def dies_with_us(number: signal.Signals) -> Callable[[], None]:
    """A preexec_fn that makes a child die with this process.

    It runs after the child has changed its user, as it must: a change of user clears the wish.
    """
    parent = os.getpid()

    def begin() -> None:
        # What was started in the background may ignore it, and its children would too until they handle it.
        signal.signal(number, signal.SIG_DFL)
        die_with(parent, number)

    return begin
