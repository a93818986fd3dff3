"""`rowcall` on a terminal of its own: what a person sees on it at any moment, types, and finds afterwards."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyte

from rowcall.base.child_processes import own_command
from tests.support.processes import LIMIT_SECONDS, wait_until

# So much is read at a time, and waited for at most so long, which is a part of what `wait_until` waits.
READ_BYTES = 65536
READ_SECONDS = 0.05


class LiveTerminal:
    """A terminal in memory, with the program that it was opened for."""

    def __init__(
        self, environment: Mapping[str, str], *arguments: str, columns: int, lines: int, folder: Path | None
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=1000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._ours, self._theirs = pty.openpty()
        self.resize(columns, lines)
        variables = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            own_command(*arguments),
            env={"TERM": "xterm-256color", "LANG": "C.UTF-8", **variables},
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            cwd=folder,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the window; the kernel tells the program."""
        termios.tcsetwinsize(self._theirs, (lines, columns))
        self.screen.resize(lines, columns)

    def type(self, keys: str) -> None:
        """Type these keys."""
        os.write(self._ours, keys.encode())

    def read(self) -> bool:
        """Show what the program has written; False if there was nothing."""
        if not select.select([self._ours], [], [], READ_SECONDS)[0]:
            return False
        written = os.read(self._ours, READ_BYTES)
        self.raw += written
        self._stream.feed(written)
        return True

    @property
    def lines(self) -> list[str]:
        """The lines on the screen."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def printed(self) -> str:
        """All that was written, without what moves the cursor or colours the text."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.raw.decode(errors="replace")).replace("\r", "")

    def wait_for(self, *patterns: str) -> list[str]:
        """Wait until the screen shows all of these at once, and return its lines."""

        def shows() -> bool:
            self.read()
            text = "\n".join(self.lines)
            return all(re.search(pattern, text, re.MULTILINE) for pattern in patterns)

        try:
            wait_until(shows, f"the screen shows {patterns}")
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self.printed[-5000:]}\n" + "\n".join(self.lines)) from None
        return self.lines

    def wait_for_end(self) -> int:
        """Wait until the program ends, and return its exit code."""

        def has_ended() -> bool:
            return not self.read() and self.process.poll() is not None

        wait_until(has_ended, "the program ends")
        return self.process.returncode

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        mode = termios.tcgetattr(self._theirs)[3]
        assert isinstance(mode, int)
        return bool(mode & termios.ECHO)

    def close(self) -> None:
        """Kill the program if it still runs."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(LIMIT_SECONDS)
        os.close(self._ours)
        os.close(self._theirs)


@contextmanager
def live_terminal(
    environment: Mapping[str, str], *arguments: str, columns: int = 100, lines: int = 30, folder: Path | None = None
) -> Iterator[LiveTerminal]:
    """Run `rowcall` on a terminal for the block."""
    terminal = LiveTerminal(environment, *arguments, columns=columns, lines=lines, folder=folder)
    try:
        yield terminal
    finally:
        terminal.close()
