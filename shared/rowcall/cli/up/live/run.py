"""`rowcall up` on a terminal: starts everything, and shows it until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import IO

from rich.text import Text

from rowcall.base.settings import Settings
from rowcall.cli.terminal.output import in_foreground, shown
from rowcall.cli.up.children import check_all
from rowcall.cli.up.live.logs import Line, Logs
from rowcall.cli.up.live.reader import Reader
from rowcall.cli.up.live.screen import Screen
from rowcall.cli.up.live.state import LOGS, State
from rowcall.cli.up.live.view import View
from rowcall.cli.up.processes import Running, up
from rowcall.cli.up.reports import Reports
from rowcall.cli.up.stop import Stop, listen_to_signals

# How often to look for ended children, new log lines and a new snapshot.
POLL_SECONDS = 0.1
# Lines of the logs that are printed at a time; more of them would scroll everything else away.
LINES_MOST = 30

STYLES = {"warning": "yellow", "error": "red"}


class LiveReports(Reports):
    """Shows the progress of `up` in the view; the children write to log files."""

    # Text, because people read the files.  A short heartbeat, because it writes a handler's progress to the database.
    environment: Mapping[str, str] = MappingProxyType({"ROWCALL_LOG_FORMAT": "text", "ROWCALL_HEARTBEAT": "2"})

    def __init__(self, settings: Settings) -> None:
        self.state = State.of(settings)
        self._logs = Logs(self.state.home / LOGS)
        self.hint = f"see above, and the logs in {self._logs.folder}"
        self._view = View(self.state)
        self._screen = Screen(self._view)

    def __enter__(self) -> LiveReports:
        try:
            self._logs.__enter__()
            self._screen.open()
        except BaseException:
            self.stopping()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stopping()
        self._logs.__exit__(kind, error, at)

    def started(self, service: str, detail: str = "") -> None:
        """Show the service as ready."""
        self.state.ready[service] = detail
        self.refresh()

    def stopping(self) -> None:
        """Print what the children have logged last, above the view, and remove the view."""
        self._print(list(self._logs.news(self.state.on_purpose, last=True)))
        if self._screen.close():
            self._screen.print(Text("Stopping ...", "dim"))

    def say_goodbye(self) -> None:
        """Print the runs and effects that the view showed last, and what is kept."""
        self._screen.print(self._view.result())
        kept = f"Its logs are in {self._logs.folder}." if self.state.is_guest else f"Its data is in {self.state.home}."
        self._screen.print(Text(f"Rowcall has stopped.  {kept}"))

    def errors_of(self, command: str) -> IO[bytes]:
        """Return the log file of the child that runs this command."""
        return self._logs.file_of(command)

    def refresh(self) -> None:
        """Print new warnings and errors of the children above the view, and draw it if something has changed."""
        if not in_foreground():
            return
        lines = list(self._logs.news(self.state.on_purpose))
        self._print(lines[:LINES_MOST])
        if len(lines) > LINES_MOST:
            self._print_above(Text(f"{len(lines) - LINES_MOST} more lines are in {self._logs.folder}", "dim"))
        self._screen.draw(self.state.version)

    def _print(self, lines: list[Line]) -> None:
        for line in lines:
            self._print_above(Text.assemble((f"{line.child}: ", "dim"), (shown(line.text), STYLES[line.level])))

    def _print_above(self, text: Text) -> None:
        # First, because printing draws the view too, and a view that fills the terminal scrolls the text away.
        self.state.leave_room_for(self._screen.lines_of(text))
        self._screen.print(text)


def run(settings: Settings, port: int | None, is_example: bool) -> None:
    """Run `up` until a signal; then say what is kept."""
    reports = LiveReports(settings)
    try:
        # Before the view changes the terminal.
        listen_to_signals()
        with reports, up(settings, port, reports, is_example) as running:
            reports.state.running = running
            with Reader(running.postgres, running.queue, reports.state.on_purpose, running.link) as reader:
                reports.state.reader = reader
                try:
                    _watch(reports, running)
                finally:
                    # At once, not only after the reader has ended.
                    reports.stopping()
    except Stop:
        reports.say_goodbye()


def _watch(reports: LiveReports, running: Running) -> None:
    """Show what happens, until a signal or the end of a child."""
    while True:
        reports.refresh()
        check_all(running.children)
        time.sleep(POLL_SECONDS)  # the ages that are shown change without an event; signals interrupt the sleep
