"""`make screenshots`: run the commands on a terminal of 100 columns, and write what it shows to docs/images/."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

from rowcall.base.clock import elapsed
from tests.support.processes import LIMIT_SECONDS, ROOT

IMAGES = ROOT / "docs" / "images"
COLUMNS, LINES = 100, 33

# The fonts that rich would load from another host; the browser's own will do.
FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)

# rich puts the cursor here before it draws the view again.
HOME = "\x1b[H"

# Shown when the demo's runs have ended.
DECLINED = "declined on purpose"


def draw(name: str, title: str, shown: str) -> None:
    """Write what a terminal shows as a picture."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(width=COLUMNS, file=nowhere, record=True, force_terminal=True, color_system="standard")
        console.print(Text.from_ansi(shown.replace("\r\n", "\n").rstrip()), soft_wrap=True)
        (IMAGES / name).write_text(FONTS.sub("", console.export_svg(title=title)))


def started(folder: Path, *command: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a command on a terminal, in this folder; return it, and our end of the terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (LINES, COLUMNS))
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("ROWCALL_", "DATABASE_URL"))}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**outer, "PATH": path, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    return process, ours


def read(terminal: int, until: str = "") -> str:
    """Read until the terminal has shown this text for a moment, or until the end."""
    seen, deadline = "", elapsed() + LIMIT_SECONDS
    while elapsed() < deadline:
        ready, _, _ = select.select([terminal], [], [], 1)
        try:
            seen += os.read(terminal, 65536).decode(errors="replace") if ready else ""
        except OSError:  # how Linux says that the other end is closed
            return seen
        if until and until in seen and seen.count(HOME) > seen[: seen.index(until)].count(HOME) + 3:
            return seen
    raise TimeoutError(f"the terminal did not show {until!r}, but {seen[-2000:]}")


def main() -> None:
    """Draw `rowcall up`, and a command beside it."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        up, terminal = started(folder, "rowcall", "up", "--port", "0")
        try:
            draw("up.svg", "rowcall up", read(terminal, DECLINED).split(HOME)[-2])
            command, other = started(folder, "rowcall", "runs", "list", "--limit", "10")
            draw("runs-list.svg", "rowcall runs list --limit 10", read(other))
            command.wait(LIMIT_SECONDS)
            os.close(other)
        finally:
            up.send_signal(signal.SIGINT)
            read(terminal)
            up.wait(LIMIT_SECONDS)
            os.close(terminal)


if __name__ == "__main__":
    main()
