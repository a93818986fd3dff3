"""Processes of Rowcall: how to start child processes, how they end with their parent, and which signals stop them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1  # from linux/prctl.h

# Loaded here, because the child must do as little as possible between fork and exec.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def own_command(*words: str) -> list[str]:
    """Return the command line that runs `rowcall` with these arguments in the same interpreter.

    -P keeps Python from importing a local folder that has the name of one of Rowcall's packages.
    """
    return [sys.executable, "-P", "-m", "rowcall.cli", *words]


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask this process to stop; SIGHUP (a closed terminal) only if not ignored (nohup)."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return (signal.SIGTERM, signal.SIGINT)
    return (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def die_with(parent: int, number: signal.Signals) -> None:
    """Make the kernel signal this process when its parent dies; exit at once if the parent is already dead.

    Only Linux can do this.  On other systems, the children of a killed parent must be stopped by hand.
    """
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def dies_with_us(number: signal.Signals) -> Callable[[], None]:
    """Return a preexec_fn that makes a child die with this process.

    subprocess calls it after the child has changed its user; a later change of user would clear the setting.
    """
    parent = os.getpid()

    def begin() -> None:
        # This process may ignore the signal, as a background process does, and the child would inherit that.
        signal.signal(number, signal.SIG_DFL)
        die_with(parent, number)

    return begin
