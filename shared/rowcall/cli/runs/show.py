"""`rowcall runs show`: one run as a person reads it, what went wrong first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from rowcall import queue
from rowcall.base.database import Row
from rowcall.cli.runs.tail import show_end
from rowcall.cli.session import command_transaction
from rowcall.cli.terminal.output import show_json, shown
from rowcall.cli.terminal.table import Table, relative, table_options
from rowcall.definitions import clock
from rowcall.status import Event, Status

# How many lines of its log are shown with a run.
LOG_LINES = 10

ENDED = ("attempt", "outcome", "error", "worker", "ended_at")


@click.command("show")
@click.argument("run_id", type=int)
@table_options
def show_command(run_id: int, table: Table) -> None:
    """Show one run: its error if it failed, its fields, its attempts that did not succeed, and the end of its log."""
    with command_transaction() as connection:
        run, attempts, now = queue.get_run(connection, run_id), queue.attempts_of(connection, run_id), clock(connection)
        log = queue.log_end(connection, run_id, LOG_LINES)
    if table.as_json:
        show_json({**run, "attempts_ended": attempts, "log_end": log})
        return
    failed = run["last_error"] is not None and run["status"] != Status.SUCCEEDED
    click.echo(f"run {run['id']}  {run['job_type']}  {run['status']}")
    if failed:
        click.echo(click.style(error_of(run), fg="red"))
    if run["pruned_at"]:
        click.echo(
            f"The details were pruned at {shown(run['pruned_at'])}: payload, result, errors and attempts are gone;"
            " its final status stays until the key expires."
        )
    click.echo()
    told = dict(_fields(run, attempts, now))
    width = max(map(len, told))
    for name, value in told.items():
        click.echo(f"{name.ljust(width)}  {value}")
    if failed and run["last_stack"]:
        click.echo()
        for line in str(run["last_stack"]).rstrip().splitlines():
            click.echo(shown(line))
    if attempts:
        click.echo()
        # Only attempts in child processes have forensics.
        forensics = ("forensics",) if any(attempt["forensics"] for attempt in attempts) else ()
        table.show([{**one, "error": error_of(one, "error")} for one in attempts], (*ENDED, *forensics), now)
    show_end(log, run_id)


def error_of(row: Row, field: str = "last_error") -> str | None:
    """The last line of a traceback: the exception's class and its text, because a text alone may say little."""
    error, error_type = row[field], row["error_type"]
    if error is None:
        return None
    return shown(f"{error_type}: {error}" if error_type else error)


def _fields(run: Row, attempts: Sequence[Row], now: datetime) -> Iterator[tuple[str, str]]:
    """What a person asks of a run, as name and text, in the order of its life; `--json` has every field."""

    def when(name: str) -> str:
        return f"{shown(run[name])} ({relative(run[name], now)})"

    for name in ("payload", "result", "progress", "natural_key", "idempotency_key", "definition_id", "scheduled_for"):
        if run[name] is not None:
            yield name, shown(run[name])
    yield "queue", f"{run['queue']}, priority {run['priority']}" if run["priority"] else shown(run["queue"])
    yield "attempts", _counted(run, attempts)
    yield "created_at", when("created_at") + (f" by {shown(run['created_by'])}" if run["created_by"] else "")
    yield "run_at", when("run_at")
    for name in ("started_at", "finished_at", "cancel_requested_at"):
        if run[name]:
            yield name, when(name)
    if run["locked_by"]:
        yield "locked_by", f"{shown(run['locked_by'])}, lease {run['lease_no']} until {when('locked_until')}"


def _counted(run: Row, attempts: Sequence[Row]) -> str:
    """The attempts since the last retry, from which they are counted anew, and those before it."""
    counted = f"{run['attempts']} of {run['max_attempts']}"
    # A snooze does not count, and the attempt that runs or has succeeded is not among those that ended otherwise.
    made = sum(attempt["outcome"] != Event.SNOOZE for attempt in attempts)
    before = made + (run["status"] in (Status.RUNNING, Status.SUCCEEDED)) - run["attempts"]
    return f"{counted} since the last retry, {before} before it" if before > 0 else counted
