"""The picture of the live view: services, runs, effects and next commands, in the lines that the terminal has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rowcall.base.database import Row
from rowcall.cli.terminal.table import relative
from rowcall.cli.up.look import EFFECTS_MOST, RUNS_MOST, Seen
from rowcall.status import Status

STYLES = {
    Status.QUEUED: "cyan",
    Status.RUNNING: "blue",
    Status.SUCCEEDED: "green",
    Status.FAILED: "yellow",
    Status.DEAD: "red",
    Status.CANCELLED: "bright_black",
}
EFFECT_STYLES = {"intent": "blue", "applied": "green", "refused": "yellow", "unknown": "red"}

# Empty lines, titles and the counts.
OTHER_LINES = 7
FEWEST_ROWS = 2

# No column but the last is wider.
WIDEST = 26


@dataclass(frozen=True)
class Frame:
    """What does not change: the services, why some runs fail on purpose, and the commands to type next."""

    services: Mapping[str, str]
    notes: Mapping[int, str]
    commands: Sequence[str]

    def picture(self, seen: Seen | None, height: int, away: bool = False) -> Group:
        """Draw it; `away` if the database did not answer just now."""
        room = max(2 * FEWEST_ROWS, height - OTHER_LINES - len(self.services) - len(self.commands))
        effects = min(EFFECTS_MOST, max(FEWEST_ROWS, room // 3))
        parts: list[RenderableType] = [self._services(), Text()]
        if away:
            parts.append(Text("The database does not answer; trying again ...", "bold red"))
        if seen is not None:
            parts += [_counts(seen), self._runs(seen, min(RUNS_MOST, max(FEWEST_ROWS, room - effects))), Text()]
            parts += [Text("Effects", "bold"), _effects(seen, effects), Text()]
        parts += [Text(command, "bold" if index == 0 else "") for index, command in enumerate(self.commands)]
        return Group(*parts)

    def _services(self) -> Table:
        grid = _grid(columns=1)
        for name, text in self.services.items():
            grid.add_row(Text(name, "bold"), Text(text))
        return grid

    def _runs(self, seen: Seen, most: int) -> RenderableType:
        if not seen.runs:
            return Text("there are no runs yet")
        grid = _grid()
        for run in seen.runs[:most]:
            status = Status(run["status"])
            style = "yellow" if run["id"] in self.notes and status is Status.DEAD else STYLES[status]
            grid.add_row(
                Text(f"run {run['id']}"), Text(run["job_type"]), Text(status, style), self._told(run, seen.now)
            )
        return grid

    def _told(self, run: Row, now: datetime) -> Text:
        """Return what matters about a run in its status."""
        status = Status(run["status"])
        if status is Status.DEAD and run["id"] in self.notes:
            return Text(self.notes[run["id"]], "yellow")
        if status in (Status.DEAD, Status.FAILED):
            return Text(" ".join(f"{run['error_type']}: {run['last_error']}".split()))
        if status is Status.RUNNING:
            share = (run["progress"] or {}).get("share")
            return Text("" if share is None else f"{share:.0%}")
        return Text(relative(run["finished_at"] or run["run_at"], now), "bright_black")


def _counts(seen: Seen) -> Text:
    """Return how many runs have each status, on one line."""
    line = Text("Runs  ", "bold")
    for status, style in STYLES.items():
        number = seen.counts.get(status, 0)
        line.append(f" {number} {status} ", style if number else "bright_black")
    return line


def _effects(seen: Seen, most: int) -> RenderableType:
    if not seen.effects:
        return Text("none yet: mails, payments, webhooks and files appear here")
    grid = _grid()
    for effect in seen.effects[:most]:
        state = Text(effect["state"], EFFECT_STYLES[effect["state"]])
        told = effect["refusal"] if effect["state"] in ("refused", "unknown") else effect["reference"]
        grid.add_row(Text(effect["kind"]), Text(effect["key"]), state, Text(" ".join((told or "").split())))
    return grid


def _grid(columns: int = 3) -> Table:
    """Return a table without lines, with these columns and a last one, which is cut at the end of the line."""
    grid = Table.grid(padding=(0, 2), pad_edge=False, expand=True)
    for _ in range(columns):
        grid.add_column(no_wrap=True, overflow="ellipsis", max_width=WIDEST)
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    return grid
