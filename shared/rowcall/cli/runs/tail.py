"""`rowcall runs tail`: what the handler of a run has logged, and what it logs next."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from rowcall import queue
from rowcall.base.database import Row, commit
from rowcall.cli.session import command_transaction, held_server, survived_outage
from rowcall.cli.terminal.output import json_option, show_json, shown
from rowcall.status import FINAL, Status

# Lines are read this many at a time.
PAGE = 200

# Seconds between two reads with --follow.
FOLLOWED_SECONDS = 1.0

COLOURS = {"warning": "yellow", "error": "red"}


@click.command("tail")
@click.argument("run_id", type=int)
@click.option("--follow", "-f", is_flag=True, help="Print new lines too, until the run ends.")
@json_option
def tail_command(run_id: int, follow: bool, as_json: bool) -> None:
    """Print the log of run RUN_ID: what its handler logged with run.log, in all attempts.

    A worker writes new lines with its heartbeat, with the progress that the handler reports, and when the attempt ends.

    With --follow, Ctrl-C ends the command with exit code 130, because the run has not ended.
    """
    tail = Tail(run_id, as_json)
    try:
        with held_server():
            tail.show()
            if follow:
                tail.follow()
    except KeyboardInterrupt:
        click.echo(err=True)  # after the terminal's ^C
        raise
    if not tail.last:
        click.echo(f"run {run_id} has logged nothing", err=True)


class Tail:
    """The log of one run, printed up to its line `last`."""

    def __init__(self, run_id: int, as_json: bool) -> None:
        self.last = 0
        self._run_id, self._as_json = run_id, as_json
        self._status = Status.QUEUED

    def show(self) -> None:
        """Print the lines since the last time, and say how many were left out before each."""
        with command_transaction() as connection:
            status = Status(queue.get_run(connection, self._run_id)["status"])
            # The lines are read later than the status, so they include those that were written when the run ended.
            commit(connection)
            more = True
            while more:
                lines, more = queue.log_page(connection, self._run_id, self.last, PAGE)
                for line in lines:
                    self._show(line)
        sys.stdout.flush()
        self._status = status

    def follow(self) -> None:
        """Print new lines until the run has ended, even if the database is unavailable for a while."""
        was_away = False
        if self._status not in (Status.RUNNING, *FINAL):
            click.echo(f"run {self._run_id} is {self._status}; waiting until it ends", err=True)
        while self._status not in FINAL:
            time.sleep(FOLLOWED_SECONDS)  # no notification says that a line was logged; Ctrl-C interrupts the sleep
            with survived_outage() as outage:
                self.show()
            if outage.reason and not was_away:
                click.echo(f"{outage.reason}; trying again until Ctrl-C", err=True)
            was_away = outage.reason is not None

    def _show(self, line: Row) -> None:
        # Lines are numbered without gaps, so a missing number means that a line was left out.
        if missing := line["line_no"] - self.last - 1:
            sys.stdout.flush()
            click.echo(in_words(missing), err=True)
        show_line(line, self._as_json)
        self.last = line["line_no"]


def show_line(line: Mapping[str, Any], as_json: bool = False) -> None:
    """Print one line; the rest of a text with several lines, such as a traceback, is indented."""
    if as_json:
        show_json(line)
        return
    first, *rest = str(line["text"]).splitlines() or [""]
    level = click.style(f"{line['level']:<7}", fg=COLOURS.get(line["level"]))
    click.echo(f"{shown(line['logged_at'])}  {line['lease_no']}  {level}  {shown(first)}")
    for further in rest:
        click.echo(f"    {shown(further)}")


def show_end(lines: Sequence[Row], run_id: int) -> None:
    """Print the last lines of a run's log, and the command that prints all of them."""
    if lines:
        click.echo()
        click.echo(
            f"the end of its log; `rowcall runs tail {run_id}` prints all of it:" if lines[0]["line_no"] > 1 else "log:"
        )
    for line in lines:
        show_line(line)


def in_words(missing: int) -> str:
    """Say how many lines are missing."""
    return f"{missing:,} {'line was' if missing == 1 else 'lines were'} left out: a run keeps only its newest lines"
