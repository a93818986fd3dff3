"""The terminal: draws the view in place, prints lines above it, and restores the terminal."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections import deque
from contextlib import suppress
from types import FrameType

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from rowcall.cli.terminal.output import in_foreground
from rowcall.cli.up.stop import undisturbed

# If neither the terminal nor its emulator says how large it is.
DEFAULT_SIZE = (80, 24)
# The last printed lines are printed again when the terminal's size changes, because the terminal is then cleared.
REPEATED = 20


class Screen:
    """A view below the terminal's other output.  Typed keys are not echoed: they would appear within the view."""

    def __init__(self, view: RenderableType) -> None:
        self._console = Console(
            file=sys.stdout, force_terminal=True, force_interactive=True, force_jupyter=False, highlight=False
        )
        self._size: tuple[int, int] | None = _measured()
        self._console.size = self._size
        self._live = Live(
            view,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._printed: deque[RenderableType] = deque(maxlen=REPEATED)
        self._echoing: list[int | list[bytes | int]] | None = None
        self._drawn: object = None
        self._is_open = False

    def open(self) -> None:
        """Draw the view."""
        self._is_open = True
        for number in (signal.SIGTSTP, signal.SIGCONT):
            signal.signal(number, self._suspend if number == signal.SIGTSTP else self._resume)
        self._echo(False)
        with undisturbed():
            self._live.start(refresh=True)

    def close(self) -> bool:
        """Remove the view, unless it is closed already; what was printed above it stays."""
        was_open, self._is_open = self._is_open, False
        if was_open:
            for number in (signal.SIGTSTP, signal.SIGCONT):
                signal.signal(number, signal.SIG_DFL)
            self._live.stop()
            self._echo(True)
        return was_open

    def print(self, shown: RenderableType) -> None:
        """Print lines above the view, or at the end if the view is closed; only the terminal wraps text."""
        self._printed.append(shown)
        with undisturbed():
            self._print(shown)

    def lines_of(self, text: Text) -> int:
        """Return how many lines of the terminal this text takes."""
        return max(-(-text.cell_len // self._console.width), 1)

    def _print(self, shown: RenderableType) -> None:
        self._console.print(shown, soft_wrap=isinstance(shown, Text))

    def draw(self, version: object) -> None:
        """Draw the view if this version or the terminal's size is not the one drawn last."""
        size = _measured()
        if (version, size) == self._drawn:
            return
        with undisturbed():
            if size != self._size:
                # The terminal may have wrapped the lines of the view, so their position is unknown.
                self._console.size = self._size = size
                self._console.clear()
                for shown in self._printed:
                    self._print(shown)
            self._live.refresh()
        self._drawn = (version, size)

    def _echo(self, on: bool) -> None:
        """Switch the echo of typed keys on or off; discard keys typed so far, so that they do not reach the shell."""
        if not (sys.stdin.isatty() and in_foreground()):
            return
        with suppress(termios.error):
            if self._echoing is None:
                self._echoing = termios.tcgetattr(sys.stdin)
            mode = list(self._echoing)
            if not on:
                assert isinstance(mode[3], int)
                mode[3] &= ~termios.ECHO
            termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, mode)

    def _suspend(self, number: int, _: FrameType | None) -> None:
        """On Ctrl-Z: leave the terminal to the shell."""
        self._console.show_cursor(True)
        self._echo(True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _resume(self, _: int, __: FrameType | None) -> None:
        """Draw again after the shell's `fg`, because the shell has written to the terminal; not after `bg`."""
        signal.signal(signal.SIGTSTP, self._suspend)
        if in_foreground():
            self._echo(False)
            self._console.show_cursor(False)
            self._size = self._drawn = None


def _measured() -> tuple[int, int]:
    """The terminal's columns and lines now."""
    with suppress(OSError):
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
        if columns and lines:
            return columns, lines
    return DEFAULT_SIZE
