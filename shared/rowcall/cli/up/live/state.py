"""What the view shows, apart from what is in the database."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from rowcall.base.settings import Settings
from rowcall.cli.up.demo import program
from rowcall.cli.up.live.reader import Reader
from rowcall.cli.up.live.snapshot import Snapshot
from rowcall.cli.up.processes import Running
from rowcall.status import Status

# The folder of the logs in ROWCALL_HOME.
LOGS = "log"

# How long lines that were just printed above the view stay visible, even if the view could fill the terminal.
PRINTED_SECONDS = 30.0
PRINTED_MOST = 5


@dataclass
class State:
    """The services that are ready, each with its detail; then all that `up` has started, and what is read.

    As a guest, `up` uses the database of DATABASE_URL.
    """

    home: Path
    is_guest: bool = False
    ready: dict[str, str] = field(default_factory=dict)
    running: Running | None = None
    reader: Reader | None = None
    _printed: tuple[float, int] = (0.0, 0)

    @classmethod
    def of(cls, settings: Settings) -> State:
        """Return the state before anything has started; a path below the current folder is relative to it."""
        home, here = settings.home.absolute(), Path.cwd()
        return cls(home.relative_to(here) if home.is_relative_to(here) else home, settings.database_url is not None)

    def leave_room_for(self, lines: int) -> None:
        """Leave this many more lines above the view."""
        self._printed = (time.monotonic(), min(self.room_above + lines, PRINTED_MOST))

    @property
    def room_above(self) -> int:
        """How many lines of the terminal the view leaves for what was just printed."""
        at, lines = self._printed
        return lines if time.monotonic() < at + PRINTED_SECONDS else 0

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest snapshot."""
        return self.reader.snapshot if self.reader else None

    @property
    def away(self) -> str | None:
        """Why the database cannot be read now, or None."""
        return self.reader.away if self.reader else None

    @property
    def on_purpose(self) -> dict[int, str]:
        """The runs that fail as expected, and the sentences about them."""
        return dict(self.running.demo.notes) if self.running and self.running.demo else {}

    @property
    def announced(self) -> dict[int, str]:
        """Those of `on_purpose` that have failed by now."""
        now = self.snapshot.announced if self.snapshot else {}
        failed = (Status.FAILED, Status.DEAD)
        return {run_id: told for run_id, told in self.on_purpose.items() if now.get(run_id) in failed}

    @property
    def version(self) -> tuple[object, ...]:
        """Changes whenever the view must be drawn again."""
        away = self.away
        waited = int(self.reader.silent_for) if self.reader and away else 0
        return len(self.ready), self.running is None, id(self.snapshot), away, waited, self._printed[0], self.room_above

    def next_steps(self) -> list[str]:
        """What a person can do next; short enough to type."""
        assert self.running is not None
        shown = max(self.announced, default=self.running.first_run["id"])
        page = self.running.page if self.snapshot is None or self.snapshot.link_works else f"{self.running.api}/admin"
        return [
            *self.running.before,
            self.running.first_step,
            f"{program()} runs show {shown}",
            f"open {page}",
        ]
