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
    """See what waits in each queue; pause, resume and limit them."""


@queues_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """Queues with live runs or with a rule; `due` is counted up to 1000."""
    with command_transaction() as connection:
        rows = queue.list_queues(connection, catalogue().limits)
    if as_json:
        show_json(rows)
    else:
        show_table(rows, LISTED, empty="nothing is live in any queue, and none is paused or limited")


@queues_command.command("pause")
@click.argument("name")
@json_option
def pause_command(name: str, as_json: bool) -> None:
    """Claim nothing more from queue NAME.  What runs goes on; what is enqueued waits."""
    with command_transaction() as connection:
        _tell(queue.pause_queue(connection, name, operator()), as_json)


@queues_command.command("resume")
@click.argument("name")
@json_option
def resume_command(name: str, as_json: bool) -> None:
    """Claim from queue NAME again."""
    with command_transaction() as connection:
        _tell(queue.resume_queue(connection, name, operator()), as_json)


@queues_command.command("limit")
@click.argument("name")
@click.argument("max_running", type=click.IntRange(0, 2**31 - 1), required=False)
@click.option("--none", "without", is_flag=True, help="Take the limit away.")
@json_option
def limit_command(name: str, max_running: int | None, without: bool, as_json: bool) -> None:
    """Let only MAX_RUNNING runs of queue NAME run at a time, over all workers."""
    if (max_running is None) != without:
        raise click.UsageError("say how many runs may run at a time, or --none")
    with command_transaction() as connection:
        _tell(queue.limit_queue(connection, name, max_running, operator()), as_json)


def _tell(row: Row, as_json: bool) -> None:
    """What holds for the queue now, and whether anything ever goes through a queue of this name."""
    name, most = row["name"], row["max_running"]
    if as_json:
        show_json(row)
        return
    limit = "without a limit" if most is None else f"limited to {most} running at a time"
    click.echo(f"queue {name} is {'paused' if row['paused_at'] else 'open'}, {limit}")
    known = {kind.queue for kind in catalogue().values()}
    if name not in known:
        click.echo(f"no job type has {name} as its queue (those have: {', '.join(sorted(known))})", err=True)
