"""The command line on a terminal of a given width."""

from __future__ import annotations

import os
import pty
import subprocess
import termios
from collections.abc import Mapping
from typing import Any

from rowcall.base.child_processes import own_command
from tests.support import preloaded
from tests.support.processes import LIMIT_SECONDS, starts_alike


def on_terminal(
    environment: Mapping[str, str], *arguments: str, columns: int = 100, errors_too: bool = False, typed: str = ""
) -> list[str]:
    """The lines that a person sees, who has typed this."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, columns))
    os.write(ours, typed.encode())
    variables = {name: value for name, value in {**os.environ, **environment}.items() if name != "COLUMNS"}
    errors = theirs if errors_too else 2
    process: subprocess.Popen[Any] = (
        preloaded.Fork(arguments, variables, (theirs, theirs, errors))
        if starts_alike(variables)
        else subprocess.Popen(own_command(*arguments), env=variables, stdin=theirs, stdout=theirs, stderr=errors)
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            read = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not read:
            break
        seen += read
    process.wait(LIMIT_SECONDS)
    os.close(ours)
    return seen.decode().replace("\r\n", "\n").splitlines()
