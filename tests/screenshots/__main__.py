"""`make screenshots`: write to docs/images/ what a terminal of 100 columns and a browser show."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.screenshots.page import draw_page
from tests.support.live_terminal import LiveTerminal, live_terminal
from tests.support.processes import ROOT

IMAGES = ROOT / "docs" / "images"
COLUMNS, LINES = 100, 33

# The fonts that rich would load from another host; the browser's own will do.
FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)

# Before the view is drawn again, the lines of the drawing before are erased.
ERASE_LINE = "\x1b[2K"

# A command says this of a local server; the folder is a temporary one.
USING = re.compile("^rowcall: using the local PostgreSQL in .*\n", re.MULTILINE)

# A one-time link is another one each time.
LINK = re.compile(r"(?<=/admin/link/)[A-Za-z0-9_-]{16}")

# Shown when the demo's runs have ended.
ENDED = ("declined on purpose", "^Runs .*33 succeeded +1 dead", "on attempt 2", "^  open ")


def draw(name: str, title: str, terminal: LiveTerminal) -> None:
    """Write what the terminal shows as a picture."""
    shown = USING.sub("", terminal.raw.decode().replace("\r\n", "\n").rpartition(ERASE_LINE)[2]).rstrip()
    shown = LINK.sub("works-only-once-", shown)
    console = Console(width=COLUMNS, file=StringIO(), record=True, force_terminal=True, color_system="standard")
    console.print(Text.from_ansi(shown), "", sep="\n", soft_wrap=True)  # rich cuts the last line's descenders
    svg = FONTS.sub("", console.export_svg(title=title, unique_id=Path(name).stem))
    (IMAGES / name).write_text(re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE))


def main() -> None:
    """Draw the operator's page; then `rowcall up`, and a command beside it."""
    IMAGES.mkdir(exist_ok=True)
    draw_page(IMAGES)
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("ROWCALL_", "DATABASE_URL"))}
    # As after `. .venv/bin/activate`, so that the view names the command `rowcall`.
    environment = {**outer, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "xterm-256color"}
    size = {"columns": COLUMNS, "lines": LINES}
    with (
        tempfile.TemporaryDirectory() as name,
        live_terminal(environment, "up", **size, folder=Path(name)) as up,
    ):
        up.wait_for(*ENDED)
        draw("up.svg", "rowcall up", up)
        with live_terminal(environment, "runs", "list", "--limit", "10", **size, folder=Path(name)) as command:
            command.wait_for_end()
            draw("runs-list.svg", "rowcall runs list --limit 10", command)
        up.type("\x03")
        up.wait_for_end()


if __name__ == "__main__":
    main()
