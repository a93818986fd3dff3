"""`rowcall archive`: the months of the archive table."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import date
from pathlib import Path

import click

from rowcall.access.audit import record
from rowcall.base import settings
from rowcall.base.database import PgConnection, connect_internal
from rowcall.base.errors import MonthNotArchived
from rowcall.base.files import Files
from rowcall.cli.retention.prune import ROLES, ByHand
from rowcall.cli.session import command_transaction, needs_rights_of, operator
from rowcall.cli.terminal.confirm import confirm, yes_option
from rowcall.cli.terminal.group import Group
from rowcall.cli.terminal.output import json_option, show_json
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.job_types.housekeeping import PRUNE_RUNS
from rowcall.local_postgres.url import database_url
from rowcall.queue.retention.archive import drop_month, months
from rowcall.queue.retention.export import FORMATS, export_month
from rowcall.queue.retention.prune import policy_of
from rowcall.schema import check_revision

LISTED = ("month", "runs", "bytes")

# Printed after the table if PostgreSQL has not counted all months.
NOT_COUNTED = "runs is PostgreSQL's estimate; - means that it has none before the first ANALYZE of the month"

NO_MONTHS = (
    'the archive table is empty; it fills if the policy of prune_runs has archive = "table" (docs/housekeeping.md)'
)


class Month(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes no parameter here
    """A month, as 2026-03; its first day."""

    name = "month"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """Return the first day of the month."""
        found = re.fullmatch(r"(\d{4})-(0[1-9]|1[0-2])", str(value))
        if found is None or found[1] == "0000":
            self.fail(f"{value!r} is not a month: write it as 2026-03", param, ctx)
        return date(int(found[1]), int(found[2]), 1)


@click.group("archive", cls=Group)
def archive_command() -> None:
    """List, export and drop the months of the archive table."""


@archive_command.command("list")
@table_options
def list_command(table: Table) -> None:
    """List the months in the archive table, by the time in UTC at which their runs were created.

    `runs` is PostgreSQL's estimate.
    """
    with command_transaction() as connection:
        rows, now = [{**row, "month": f"{row['month']:%Y-%m}"} for row in months(connection)], clock(connection)
    table.show(rows, LISTED, now, NO_MONTHS)
    if not table.as_json and any(row["runs"] is None for row in rows):
        click.echo(NOT_COUNTED, err=True)


@archive_command.command("export")
@click.argument("month", type=Month())
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMATS]),
    help="[default: export_archive of the policy of prune_runs, or csv]",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder in which the file is written.  [default: ROWCALL_ARCHIVE]",
)
@json_option
def export_command(month: date, form: str | None, folder: Path | None, as_json: bool) -> None:
    """Write the runs of MONTH (as 2026-03) to one file; they stay in the table.

    CSV is compressed with gzip; Parquet needs the parquet extra.
    """
    current = settings.read()
    files = Files(folder or current.archive_folder)
    with database_url(current) as url, closing(connect_internal(url)) as connection:
        steps = ByHand(connection)
        with steps.step():
            _check(connection, month)
            form = form or policy_of(connection, PRUNE_RUNS.name)["export_archive"] or "csv"
        exported = export_month(steps.step, files, month, form)
    path = (folder or current.archive_folder) / exported.path
    if as_json:
        show_json({"month": f"{month:%Y-%m}", "path": str(path), "runs": exported.runs, "bytes": exported.size})
    else:
        are = "is" if exported.runs == 1 else "are"
        click.echo(f"{_runs(exported.runs)} of {month:%Y-%m} {are} in {path} ({exported.size:,} bytes)")


@archive_command.command("drop")
@click.argument("month", type=Month())
@yes_option
def drop_command(month: date, yes: bool) -> None:
    """Drop MONTH (as 2026-03) from the archive table, with its runs."""
    current = settings.read()
    with database_url(current) as url, needs_rights_of(ROLES), closing(connect_internal(url)) as connection:
        by_hand = ByHand(connection)
        with by_hand.step():
            _check(connection, month)
        confirm(f"this drops all archived runs that were created in {month:%Y-%m}", yes)
        with by_hand.step():
            dropped = drop_month(connection, month)
            record(connection, operator().who, "prune", "run", None, None, {"archived_month": f"{month:%Y-%m}"})
    click.echo(f"{month:%Y-%m} is dropped, with {_runs(dropped)}")


def _check(connection: PgConnection, month: date) -> None:
    """Raise if the archive table has no such month."""
    check_revision(connection)
    if month not in [row["month"] for row in months(connection)]:
        raise MonthNotArchived(month)


def _runs(count: int) -> str:
    return f"{count:,} run" if count == 1 else f"{count:,} runs"
