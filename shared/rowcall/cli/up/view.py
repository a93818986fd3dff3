"""The live view of `rowcall up` on a terminal.  The library rich is imported only here and in `picture`."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import NoReturn

from rich.console import Console
from rich.live import Live

from rowcall.cli.up.look import Look, Seen
from rowcall.cli.up.picture import Frame
from rowcall.cli.up.processes import POLL_SECONDS, Running, check_all

REFRESH_SECONDS = 1.0


def watch(running: Running, frame: Frame) -> NoReturn:
    """Show the view until a signal comes; raise an error if a child ends by itself."""
    console = Console()
    seen: Seen | None = None
    try:
        with closing(Look(running.postgres)) as look, Live(console=console, screen=True, auto_refresh=False) as live:
            next_look = 0.0
            while True:
                check_all(running.children)
                if time.monotonic() >= next_look:
                    newer = look.take()
                    seen = newer or seen
                    live.update(frame.picture(seen, console.height, away=newer is None), refresh=True)
                    next_look = time.monotonic() + REFRESH_SECONDS
                time.sleep(POLL_SECONDS)  # signals interrupt it; Python cannot wait for several children at once
    finally:
        # The view was on a screen of its own, which is gone: what it showed last stays readable.
        console.print(replace(frame, commands=()).picture(seen, console.height))
