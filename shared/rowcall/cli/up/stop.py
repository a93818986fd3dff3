"""Ends `rowcall up` at the first signal, but never in the middle of drawing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rowcall.base.child_processes import stop_signals


class Stop(BaseException):
    """A signal (Ctrl-C, SIGTERM or SIGHUP) asks `up` to stop."""


class _Signals:
    """Whether a signal has come, and whether it has to wait for the end of a block."""

    def __init__(self) -> None:
        self.came = self.held = False

    def receive(self, _: int, __: FrameType | None) -> None:
        """Raise Stop at the first signal, now or at the end of the block."""
        # Further signals are not set to SIG_IGN: Python would print an error for one that came just before.
        if not self.came:
            self.came = True
            if not self.held:
                raise Stop


_signals = _Signals()


def listen_to_signals() -> None:
    """Raise Stop at the first signal, and ignore further ones during cleanup."""
    for number in stop_signals():
        signal.signal(number, _signals.receive)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a signal wait for the end of this short block: if rich is interrupted after a write, it writes that again."""
    before = _signals.came
    _signals.held = True
    try:
        yield
    finally:
        _signals.held = False
    if _signals.came and not before:
        raise Stop
