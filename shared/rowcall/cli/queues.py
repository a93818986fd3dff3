"""`rowcall queues`."""

from __future__ import annotations

import click

from rowcall import queue
from rowcall.base.database import Row
from rowcall.cli.parameters import Most
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.group import Group
from rowcall.cli.terminal.output import json_option, show_json, wrapped
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.job_types import catalogue

LISTED = ("name", "paused_at", "max_running", "running_under_limit", "due", "due_since")


@click.group("queues", cls=Group)
def queues_command() -> None:
    """List, pause, resume and limit queues."""


@queues_command.command("list")
@table_options
def list_command(table: Table) -> None:
    """List queues with live runs or settings; `due` is counted up to 1000."""
    with command_transaction() as connection:
        rows, now = queue.list_queues(connection, catalogue().limits), clock(connection)
    table.show(rows, LISTED, now, "no queue has live runs, and none is paused or limited")


@queues_command.command("pause")
@click.argument("name")
@json_option
def pause_command(name: str, as_json: bool) -> None:
    """Pause queue NAME.  Running runs continue; all others wait."""
    with command_transaction() as connection:
        _report(queue.pause_queue(connection, name, operator()), as_json)


@queues_command.command("resume")
@click.argument("name")
@json_option
def resume_command(name: str, as_json: bool) -> None:
    """Resume queue NAME."""
    with command_transaction() as connection:
        _report(queue.resume_queue(connection, name, operator()), as_json)


# So that a negative number is refused as a number, not as an unknown option.
@queues_command.command("limit", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("max_running", type=Most(0, 2**31 - 1), required=False)
@click.option("--none", "without", is_flag=True, help="Remove the limit.")
@json_option
def limit_command(name: str, max_running: int | None, without: bool, as_json: bool) -> None:
    """Limit how many runs of queue NAME run at a time, across all workers."""
    if (max_running is None) != without:
        raise click.UsageError("specify MAX_RUNNING or --none")
    with command_transaction() as connection:
        _report(queue.limit_queue(connection, name, max_running, operator()), as_json)


@queues_command.command("remove")
@click.argument("name")
def remove_command(name: str) -> None:
    """Remove the pause and the limit of queue NAME, for example if the name was misspelt.  Its runs stay."""
    with command_transaction() as connection:
        queue.remove_queue(connection, name, operator())
    click.echo(f"queue {name} no longer has settings")


def _report(row: Row, as_json: bool) -> None:
    """Print the queue's settings, and a warning if no job type uses it."""
    name, most = row["name"], row["max_running"]
    if as_json:
        show_json(row)
        return
    limit = "without a limit" if most is None else f"limited to {most} run{'' if most == 1 else 's'} at a time"
    click.echo(f"queue {name} is {'paused' if row['paused_at'] else 'active'}, {limit}")
    used = catalogue().queues
    if name not in used:
        hint = (
            f"no job type uses the queue {name}; queues in use: {', '.join(sorted(used))}; if the name is misspelt,"
            f" `rowcall queues remove {name}` removes these settings"
        )
        click.echo(wrapped(hint, errors=True), err=True)
