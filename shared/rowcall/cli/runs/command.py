"""`rowcall enqueue` and `rowcall runs`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import click

from rowcall import queue
from rowcall.base.database import Row
from rowcall.cli.parameters import JsonObject, Moment
from rowcall.cli.runs.explain import explain_command
from rowcall.cli.runs.filtered import filtered, in_words, misspelt
from rowcall.cli.runs.show import error_of, show_command
from rowcall.cli.runs.steering import (
    cancel_command,
    clone_command,
    reschedule_command,
    retry_command,
    run_now_command,
)
from rowcall.cli.runs.tail import tail_command
from rowcall.cli.session import command_transaction, held_server, operator, survived_outage
from rowcall.cli.terminal.group import Group
from rowcall.cli.terminal.output import json_option, show_json
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.queue.views.lists import LARGE
from rowcall.status import Status

LISTED = ("id", "job_type", "status", "attempts", "queue", "run_at", "finished_at", "error")
# The columns that a narrow terminal drops first, to keep the error.
SPARE = ("queue", "attempts", "run_at", "finished_at")

# On a terminal, the mark after the status of an archived run.
ARCHIVED = "*"

# Seconds between two reads with --watch.
WATCHED_SECONDS = 2.0


@click.command("enqueue")
@click.argument("job_type")
@click.argument("payload", type=JsonObject(), default="{}")
@click.option(
    "--key",
    help="Idempotency key: a repeated request with the same key and content returns the same run.  The natural key of"
    " the type applies too.",
)
@click.option("--run-at", type=Moment(), help="Not before this time.  [default: now]")
@click.option("--queue", "queue_name", help="Queue.  [default: the type's]")
@click.option("--priority", type=int, default=0, show_default=True, help="A lower number is more urgent.")
@click.option("--max-attempts", type=int, help="Give up after this many attempts.  [default: the type's]")
@click.option("--fail-if-exists", is_flag=True, help="Exit with 1 if a run with the same key exists already.")
@json_option
def enqueue_command(
    job_type: str,
    payload: dict[str, Any],
    queue_name: str | None,
    fail_if_exists: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Enqueue a run of JOB_TYPE with PAYLOAD, a JSON object."""
    with command_transaction() as connection:
        outcome = queue.enqueue_as(connection, operator(), job_type, payload, queue=queue_name, **options)
    if as_json:
        show_json(vars(outcome))
    else:
        click.echo(f"run {outcome.run_id} {'already exists: nothing added' if outcome.replayed else 'queued'}")
    if fail_if_exists and outcome.replayed:
        sys.exit(1)


@click.group("runs", cls=Group)
def runs_command() -> None:
    """Show and change runs."""


@runs_command.command("list")
@filtered
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Show at most this many.")
@click.option(
    "--include",
    multiple=True,
    type=click.Choice(LARGE),
    help="With --json: also include the payload or the result.  May be repeated.",
)
@click.option("--watch", is_flag=True, help="Refresh the list every two seconds, until Ctrl-C.")
@table_options
def list_command(criteria: queue.Filter, limit: int, include: tuple[str, ...], watch: bool, table: Table) -> None:
    """List the newest runs that match the options."""
    if watch:
        with held_server():
            _watch(lambda: _list(criteria, limit, include, table))
    else:
        _list(criteria, limit, include, table)


def _watch(show: Callable[[], None]) -> None:
    """Refresh the list until Ctrl-C, even if the database becomes unavailable after the first read."""
    try:
        show()
        while True:
            time.sleep(WATCHED_SECONDS)  # no notification says that a run has changed; Ctrl-C interrupts the sleep
            click.clear()
            with survived_outage() as outage:
                show()
            if outage.reason:
                click.echo(f"{outage.reason}; trying again in {WATCHED_SECONDS:g} seconds")
    except KeyboardInterrupt:
        click.echo()  # after the terminal's ^C


def _list(criteria: queue.Filter, limit: int, include: tuple[str, ...], table: Table) -> None:
    with command_transaction() as connection:
        page = queue.list_runs(connection, criteria, limit, include=include)
        rows, now = page.runs, clock(connection)
        # A page may be short, because it limits how much it scans; the user wants as many runs as requested.
        while page.next and len(rows) < limit:
            page = queue.list_runs(connection, criteria, limit - len(rows), page.next, include=include)
            rows += page.runs
    if criteria.leaves_all_open:
        empty = "there are no runs; `rowcall enqueue TYPE` enqueues one"
    else:
        question = "" if rows else misspelt(criteria)
        empty = "; ".join(filter(None, (f"no runs match {in_words(criteria)}", question)))
    marked = not table.as_json and sys.stdout.isatty() and any(row["archived"] for row in rows)
    if not table.as_json:
        rows = [_as_listed(row, marked) for row in rows]
    table.show(rows, LISTED, now, empty, spare=SPARE)
    if marked:
        click.echo(f"{ARCHIVED} in the archive: can be read and cloned")


def _as_listed(row: Row, marked: bool) -> Row:
    """Return a row for people: without the errors of earlier attempts, and with a mark if it is archived."""
    return {
        **row,
        "status": f"{row['status']}{ARCHIVED if marked and row['archived'] else ''}",
        "error": None if row["status"] == Status.SUCCEEDED else error_of(row),
    }


for one in (
    *(show_command, tail_command, explain_command),
    *(retry_command, cancel_command, run_now_command, reschedule_command, clone_command),
):
    runs_command.add_command(one)
