"""`rowcall operations`."""

from __future__ import annotations

import click

from rowcall.base import settings
from rowcall.base.database import Row
from rowcall.base.errors.sentences import has_status
from rowcall.cli.runs.filtered import in_words
from rowcall.cli.runs.many import counts, report
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.group import Group
from rowcall.cli.terminal.output import json_option, show_fields, show_json, wrapped
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.job_types import catalogue
from rowcall.queue import operations
from rowcall.queue.views.filters import from_json

LISTED = ("id", "action", "status", "matched", "changed", "refused", "requested_by", "created_at", "reason")

# The run that was changed first and alone, and the run of carry_out_operation.
LABELS = {"canary_run_id": "canary run", "run_id": "operation's own run"}

NO_FILTER = "none: all runs that the action can change"


@click.group("operations", cls=Group)
def operations_command() -> None:
    """List, stop and continue operations, which change many runs; `rowcall runs retry --status dead` starts one."""


@operations_command.command("list")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Show at most this many.")
@table_options
def list_command(limit: int, table: Table) -> None:
    """List the newest operations."""
    with command_transaction() as connection:
        rows, now = operations.list_operations(connection, limit).rows, clock(connection)
    table.show(rows, LISTED, now, "there are no operations", ("reason", "requested_by"))


@operations_command.command("show")
@click.argument("operation_id", type=int)
@json_option
def show_command(operation_id: int, as_json: bool) -> None:
    """Show one operation: its progress, and what it is waiting for."""
    heartbeat = settings.read().heartbeat
    with command_transaction() as connection:
        operation = operations.get_operation(connection, operation_id)
        waiting = operations.why_it_waits(connection, operation, catalogue().limits, heartbeat)
    if as_json:
        show_json({**operation, "waiting": waiting and waiting._asdict()})
        return
    click.echo(f"operation {operation_id} {has_status(operation['status'])}: {counts(operation)}")
    if waiting:
        click.echo(wrapped(waiting.message))
    click.echo()
    show_fields(_in_words(operation))
    for command in waiting.commands if waiting else ():
        click.echo(f"try: {command}")


def _in_words(operation: Row) -> Row:
    """Return the fields under plain labels, with the filter as the options that make it."""
    fields = {LABELS.get(name, name): operation[name] for name in operation if name not in ("id", "status")}
    return {**fields, "filter": in_words(from_json(operation["filter"])) or NO_FILTER}


@operations_command.command("refusals")
@click.argument("operation_id", type=int)
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Show at most this many.")
@table_options
def refusals_command(operation_id: int, limit: int, table: Table) -> None:
    """List the runs that an operation refused to change, with the reasons."""
    with command_transaction() as connection:
        rows, now = operations.refusals_page(connection, operation_id, limit).rows, clock(connection)
    table.show(rows, ("run_id", "refused_at", "reason"), now, f"operation {operation_id} has refused no runs")


@operations_command.command("stop")
@click.argument("operation_id", type=int)
@json_option
def stop_command(operation_id: int, as_json: bool) -> None:
    """Stop an operation before its next batch.  Runs that it has already changed stay changed."""
    with command_transaction() as connection:
        operation = operations.stop(connection, operation_id, operator())
    report(operation, as_json)


@operations_command.command("continue")
@click.argument("operation_id", type=int)
@json_option
def continue_command(operation_id: int, as_json: bool) -> None:
    """Continue an operation that is waiting after its canary, or that was stopped."""
    with command_transaction() as connection:
        operation = operations.continue_operation(connection, operation_id, operator())
    report(operation, as_json)
