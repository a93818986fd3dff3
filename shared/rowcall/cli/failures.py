"""`rowcall failures`."""

from __future__ import annotations

import click

from rowcall.cli.session import command_transaction
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.queue.failures.list import list_failures

# Column -> the field of the list.
PERIODS = {"1 h": "last_hour", "24 h": "last_day", "7 d": "last_week"}
LISTED = ("job_type", "error_type", *PERIODS, "retrying", "last_at", "run_id", "error")
MORE = ("first_at",)
# The columns that a narrow terminal drops first, to keep the error.
SPARE = ("last_at", "7 d", "retrying", "run_id")


@click.command("failures")
@click.option("--type", "job_type", help="Only failures of this job type.")
@click.option("--queue", help="Only failures in this queue.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Show at most this many.")
@table_options
def failures_command(job_type: str | None, queue: str | None, limit: int, table: Table) -> None:
    """List the errors that made attempts fail in the last 7 days, the most frequent in the last hour first.

    Each error is shown with the run that failed with it most recently, and with the number of its runs that are
    waiting for another attempt (retrying).  In an error, * replaces what differs between runs: quoted text, and words
    that contain a digit or an @.  If only * would remain, as for a KeyError, the newest error is shown unchanged.
    """
    with command_transaction() as connection:
        found = list_failures(connection, job_type, queue, limit)
        now = clock(connection)
    # The key is only for links on the page.
    errors = [{name: value for name, value in row.items() if name != "error_key"} for row in found.errors]
    rows = [{**row, **{name: row[field] for name, field in PERIODS.items()}} for row in errors]
    given = " ".join(f"--{name} {value}" for name, value in {"type": job_type, "queue": queue}.items() if value)
    empty = f"no attempt{f' that matches {given}' if given else ''} has failed in the last 7 days"
    table.show(errors if table.as_json else rows, LISTED, now, empty, MORE, spare=SPARE)
    if not found.complete:
        click.echo("many attempts have failed lately, and some are not counted yet: repeat this in a minute", err=True)
