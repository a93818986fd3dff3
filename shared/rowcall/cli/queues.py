"""`rowcall queues`."""

from __future__ import annotations

import click

from rowcall import queue
from rowcall.base.database import Row
from rowcall.cli.output import json_option, show_json, show_table
from rowcall.cli.session import command_transaction, operator
from rowcall.job_types import catalogue

LISTED = ("name", "paused_at", "max_running", "running_under_limit", "due", "due_since")


@click.group("queues")
def queues_command() -> None:
    """List, pause, resume and limit queues."""


@queues_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List queues with live runs or settings; `due` is counted up to 1000."""
    with command_transaction() as connection:
        rows = queue.list_queues(connection, catalogue().limits)
    show_table(rows, LISTED, "no queue has live runs, and none is paused or limited", as_json)


@queues_command.command("pause")
@click.argument("name")
@json_option
def pause_command(name: str, as_json: bool) -> None:
    """Stop claims from queue NAME.  Running runs continue; all others wait."""
    with command_transaction() as connection:
        _report(queue.pause_queue(connection, name, operator()), as_json)


@queues_command.command("resume")
@click.argument("name")
@json_option
def resume_command(name: str, as_json: bool) -> None:
    """Resume queue NAME."""
    with command_transaction() as connection:
        _report(queue.resume_queue(connection, name, operator()), as_json)


@queues_command.command("limit")
@click.argument("name")
@click.argument("max_running", type=click.IntRange(0, 2**31 - 1), required=False)
@click.option("--none", "without", is_flag=True, help="Remove the limit.")
@json_option
def limit_command(name: str, max_running: int | None, without: bool, as_json: bool) -> None:
    """Limit how many runs of queue NAME run at a time, across all workers."""
    if (max_running is None) != without:
        raise click.UsageError("give MAX_RUNNING or --none")
    with command_transaction() as connection:
        _report(queue.limit_queue(connection, name, max_running, operator()), as_json)


def _report(row: Row, as_json: bool) -> None:
    """Print the queue's settings, and a warning if no job type uses it."""
    name, most = row["name"], row["max_running"]
    if as_json:
        show_json(row)
        return
    limit = "without a limit" if most is None else f"limited to {most} running at a time"
    click.echo(f"queue {name} is {'paused' if row['paused_at'] else 'active'}, {limit}")
    used = {job_type.queue for job_type in catalogue().values()}
    if name not in used:
        click.echo(f"no job type has the queue {name}; queues in use: {', '.join(sorted(used))}", err=True)
