"""`rowcall enqueue` and `rowcall runs`."""

from __future__ import annotations

from typing import Any

import click

from rowcall import queue
from rowcall.cli.output import json_option, show_fields, show_json, show_table, shown
from rowcall.cli.parameters import JsonObject, Moment
from rowcall.cli.runs.explain import explain_command
from rowcall.cli.runs.filtered import filtered
from rowcall.cli.runs.steering import cancel_command, clone_command, retry_command, run_now_command
from rowcall.cli.session import command_transaction, operator
from rowcall.queue.views.lists import LARGE

LISTED = ("id", "job_type", "status", "attempts", "queue", "run_at", "finished_at", "last_error")


@click.command("enqueue")
@click.argument("job_type")
@click.argument("payload", type=JsonObject(), default="{}")
@click.option(
    "--key",
    help="Idempotency key: a repeated request with the same key and content gives the same run.  The natural key of"
    " the type applies too.",
)
@click.option("--run-at", type=Moment(), help="Not before this time.  [default: now]")
@click.option("--queue", "queue_name", help="Queue.  [default: the type's]")
@click.option("--priority", type=int, default=0, show_default=True, help="A lower number is more urgent.")
@click.option("--max-attempts", type=int, help="Give up after this many attempts.  [default: the type's]")
@json_option
def enqueue_command(
    job_type: str, payload: dict[str, Any], queue_name: str | None, as_json: bool, **options: Any
) -> None:
    """Enqueue a run of JOB_TYPE with PAYLOAD, a JSON object."""
    with command_transaction() as connection:
        outcome = queue.enqueue_as(connection, operator(), job_type, payload, queue=queue_name, **options)
    if as_json:
        show_json(vars(outcome))
    else:
        click.echo(f"run {outcome.run_id} {'already exists: nothing added' if outcome.replayed else 'queued'}")


@click.group("runs")
def runs_command() -> None:
    """Show and change runs."""


for steering in (explain_command, retry_command, cancel_command, run_now_command, clone_command):
    runs_command.add_command(steering)


@runs_command.command("list")
@filtered
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@click.option(
    "--include", multiple=True, type=click.Choice(LARGE), help="Also include this field, with --json.  May be repeated."
)
@json_option
def list_command(criteria: queue.Filter, limit: int, include: tuple[str, ...], as_json: bool) -> None:
    """List the newest runs that match the options."""
    with command_transaction() as connection:
        page = queue.list_runs(connection, criteria, limit, include=include)
        rows = page.runs
        # A page may be short, because it limits how much it scans; the user wants as many runs as requested.
        while page.next and len(rows) < limit:
            page = queue.list_runs(connection, criteria, limit - len(rows), page.next, include=include)
            rows += page.runs
    show_table(rows, LISTED, "no runs match; `rowcall enqueue noop` enqueues one", as_json)


@runs_command.command("show")
@click.argument("run_id", type=int)
@json_option
def show_command(run_id: int, as_json: bool) -> None:
    """Show a run, and its attempts that did not succeed."""
    with command_transaction() as connection:
        run, attempts = queue.get_run(connection, run_id), queue.attempts_of(connection, run_id)
    if as_json:
        show_json({**run, "attempts_ended": attempts})
        return
    show_fields(run)
    if run["pruned_at"]:
        click.echo(
            f"\nThe details were pruned at {shown(run['pruned_at'])}: payload, result, errors and attempts are gone;"
            " its final status stays until the key expires."
        )
    if attempts:
        click.echo()
        # Only attempts in child processes have forensics.
        forensics = ("forensics",) if any(attempt["forensics"] for attempt in attempts) else ()
        columns = ("attempt", "outcome", "worker", "ended_at", "error_type", *forensics, "error")
        show_table(attempts, columns, empty="")
