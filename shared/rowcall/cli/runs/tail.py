"""`rowcall runs tail`: what the handler of a run logged, and what it logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from rowcall import queue
from rowcall.base.database import PgConnection, Row, commit
from rowcall.cli.session import command_transaction, held_server
from rowcall.cli.terminal.output import json_option, show_json, shown
from rowcall.status import FINAL

# Lines are read this many at a time.
PAGE = 200

# Seconds between two reads with --follow.
FOLLOWED_SECONDS = 1.0

COLOURS = {"warning": "yellow", "error": "red"}


@click.command("tail")
@click.argument("run_id", type=int)
@click.option("--follow", "-f", is_flag=True, help="Print new lines too, until the run ends or Ctrl-C.")
@json_option
def tail_command(run_id: int, follow: bool, as_json: bool) -> None:
    """Print the log of run RUN_ID: what its handler logged with run.log, in all attempts.

    A worker writes new lines with its heartbeat, with the progress that the handler reports, and when the attempt ends.
    """
    try:
        with held_server():
            _tail(run_id, follow, as_json)
    except KeyboardInterrupt:
        click.echo(err=True)


def _tail(run_id: int, follow: bool, as_json: bool) -> None:
    after, goes_on = 0, True
    while goes_on:
        with command_transaction() as connection:
            goes_on = queue.get_run(connection, run_id)["status"] not in FINAL and follow
            # The lines are read later than the status, so those that were written with the end are among them.
            commit(connection)
            if not after and (missing := queue.left_out(connection, run_id)):
                click.echo(in_words(missing), err=True)
            after = _show_after(connection, run_id, after, as_json)
        sys.stdout.flush()
        if goes_on:
            time.sleep(FOLLOWED_SECONDS)  # the log is read again at intervals; Ctrl-C interrupts it
    if not after:
        click.echo(f"run {run_id} has logged nothing", err=True)


def _show_after(connection: PgConnection, run_id: int, after: int, as_json: bool) -> int:
    """Print the lines after this one, page by page; return the number of the last."""
    more = True
    while more:
        lines, more = queue.log_page(connection, run_id, after, PAGE)
        for line in lines:
            show_line(line, as_json)
            after = line["line_no"]
    return after


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
    """Print the last lines of a run, and how to see all."""
    if lines:
        click.echo()
        click.echo(
            f"the end of its log; `rowcall runs tail {run_id}` prints all of it:" if lines[0]["line_no"] > 1 else "log:"
        )
    for line in lines:
        show_line(line)


def in_words(missing: int) -> str:
    """Say how many lines are missing."""
    return f"{missing:,} {'line was' if missing == 1 else 'lines were'} left out: a run keeps its newest lines"
