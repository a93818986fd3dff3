"""The rows of the view: a run, an effect, and their words."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Literal

from rich.table import Table
from rich.text import Text

from rowcall.base.database import Row
from rowcall.base.durations import relative
from rowcall.cli.terminal.output import shown
from rowcall.status import Status

# The terminal's own colours, which its user can read.
STYLES = {
    Status.QUEUED: "cyan",
    Status.RUNNING: "bold cyan",
    Status.SUCCEEDED: "green",
    Status.FAILED: "yellow",
    Status.DEAD: "red",
    Status.CANCELLED: "dim",
}
STATES = {"applied": "green", "refused": "yellow", "unknown": "red"}

BAR_WIDTH = 12
NOW = datetime(2000, 1, 1, tzinfo=UTC)


def ago(seconds: float) -> str:
    """How long ago something was, or how far ahead it is if the number is negative."""
    return relative(NOW - timedelta(seconds=seconds), NOW)


def one_line(text: str) -> str:
    """The text without line breaks, and with control characters escaped."""
    return shown(" ".join(text.split()))


def grid(wide: int, columns: int) -> Table:
    """A table without borders that fits the width: column `wide` takes the rest, and the last is aligned right."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for column in range(columns):
        last = column == columns - 1 != wide
        justify: Literal["left", "right"] = "right" if last else "left"
        table.add_column(no_wrap=True, overflow="ellipsis", justify=justify, ratio=1 if column == wide else None)
    return table


def counts(by_status: dict[Status, int]) -> Text:
    """How many runs have each status, in the order of a run's life."""
    parts = [
        Text.assemble((f"{by_status[status]:,}", f"bold {STYLES[status]}"), (f" {status}", STYLES[status]))
        for status in Status
        if by_status.get(status)
    ]
    return Text("   ").join(parts) if parts else Text("none yet", "dim")


def runs_table(runs: Iterable[Row], expected: Collection[int]) -> Table:
    """The runs, each on one line."""
    table = grid(3, 5)
    for run in runs:
        style = "yellow" if run["id"] in expected else STYLES[Status(run["status"])]
        table.add_row(
            Text(f"{run['id']:>5}", "dim"),
            Text(shown(run["job_type"])),
            Text(run["status"], style),
            told(run, run["id"] in expected),
            Text(ago(run["age"]), "dim"),
        )
    return table


def told(run: Row, is_expected: bool) -> Text:
    """What to know about a run, in a few words."""
    status = Status(run["status"])
    if status is Status.RUNNING:
        return progress(run)
    if status is Status.QUEUED:
        return Text(f"due {ago(-run['due_in'])}" if run["due_in"] > 1 else "", "dim")
    if status in (Status.FAILED, Status.DEAD):
        retry = f"retry {ago(-run['due_in'])}" if run["due_in"] > 1 else "retry due"
        again = retry if status is Status.FAILED else ""
        why = "on purpose, see below" if is_expected else one_line(f"{run['error_type']}: {run['error']}")
        return Text(", ".join(filter(None, (again, why))), "yellow" if is_expected else STYLES[status])
    return Text(f"on attempt {run['attempts']}" if run["attempts"] > 1 else "", "dim")


def progress(run: Row) -> Text:
    """A bar if the handler reports progress, or how long the run has been running."""
    if run["share"] is None:
        return Text(f"started {ago(run['running_for'])}", "dim")
    done = round(run["share"] * BAR_WIDTH)
    note = f"  {one_line(run['note'])}" if run["note"] else ""
    return Text.assemble(
        ("━" * done, "cyan"), ("━" * (BAR_WIDTH - done), "dim"), f" {run['share']:4.0%}", (note, "dim")
    )


def effects_table(effects: Iterable[Row]) -> Table:
    """The effects, each on one line."""
    table = grid(2, 5)
    for effect in effects:
        table.add_row(
            Text(f"{effect['run_id']:>5}", "dim"),
            Text(shown(effect["kind"])),
            Text(one_line(effect["target"]), "dim"),
            Text(effect["state"], STATES.get(effect["state"], "cyan")),
            Text(ago(effect["age"]), "dim"),
        )
    return table
