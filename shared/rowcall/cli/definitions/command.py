"""`rowcall definitions`: show, apply and change definitions."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from rowcall import definitions
from rowcall.base.database import Row
from rowcall.base.errors import ScheduleInvalid
from rowcall.cli.definitions.preview import preview_command
from rowcall.cli.definitions.unapplied import DefinitionsGroup
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.output import json_option, show_fields, show_json, shown, wrapped
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import Difference
from rowcall.job_types import catalogue
from rowcall.queue import get_run
from rowcall.schedule import zone_named

LISTED = ("name", "job_type", "schedule", "time_zone", "next_run_at", "paused_at")
MORE = ("revision", "managed_by", "id")
# The columns that a narrow terminal drops first, to keep the next time.
SPARE = ("paused_at", "time_zone", "job_type")
OCCURRED = ("nominal_at", "outcome", "run_id", "revision", "created_at", "reason")
STATE = ("id", "revision", "next_run_at", "paused_at", "managed_by", "created_at", "updated_at")

NONE_PASSED = "no nominal time has passed yet"
NEXT_TICK = "the next tick will process it"
PAUSED = "paused"
BY_HAND = "it has no schedule: run it with `rowcall definitions run-now`"


@click.group("definitions", cls=DefinitionsGroup)
def definitions_command() -> None:
    """Show and change definitions: which job types run, and when."""


@definitions_command.command("list")
@table_options
def list_command(table: Table) -> None:
    """List all definitions, with their next times and problems."""
    with command_transaction() as connection:
        rows, now = definitions.list_definitions(connection), definitions.clock(connection)
        last = definitions.last_tick(connection)
    if table.as_json:
        show_json([_with_problem(row, last, now) for row in rows])
    else:
        local = [{**row, **_next(row), "problem": _problem(row, last, now)} for row in rows]
        problems = [row for row in local if row["problem"]]
        columns = (*LISTED, "problem") if problems and not table.cuts else LISTED
        empty = "there are no definitions; `rowcall definitions apply FILE` creates them"
        table.show(local, columns, now, empty, MORE, spare=SPARE)
        # A column would cut them.
        for row in problems if table.cuts else ():
            click.echo(click.style(wrapped(f"{row['name']}: {row['problem']}"), fg="red"))


@definitions_command.command("show")
@click.argument("name")
@click.option(
    "--occurrences",
    type=click.IntRange(0, 1000),
    default=10,
    show_default=True,
    help="How many occurrences to show, latest first.",
)
@table_options
def show_command(name: str, occurrences: int, table: Table) -> None:
    """Show definition NAME and its latest occurrences."""
    with command_transaction() as connection:
        row = definitions.get_definition(connection, name)
        occurred = definitions.occurrences_of(connection, row["id"], occurrences)
        last, now = definitions.last_tick(connection), definitions.clock(connection)
    if table.as_json:
        show_json({**_with_problem(row, last, now), "occurrences": occurred})
        return
    problem = _problem(row, last, now)
    more = {"problem": problem} if problem else {}
    show_fields(definitions.in_words({**_with_state(row), **_next(row), **more}))
    click.echo()
    local = [{**one, "nominal_at": _by_its_clock(row, one["nominal_at"])} for one in occurred]
    table.show(local, OCCURRED, empty=_without_occurrences(row, last, now))


@definitions_command.command("apply")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option(
    "--prune", is_flag=True, help="Remove definitions that an earlier apply created and FILE no longer contains."
)
@json_option
def apply_command(file: Path | None, dry_run: bool, prune: bool, as_json: bool) -> None:
    """Apply the definitions in FILE (TOML or YAML): all of them, or none.

    Without FILE, apply the definitions that the code declares, as `rowcall migrate` does.  Applying the same file again
    changes nothing.
    """
    with command_transaction() as connection:
        if file is None:
            done = definitions.apply_code(connection, catalogue(), operator(), prune)
        else:
            done = definitions.apply_file(connection, file, catalogue(), operator(), prune)
        if dry_run:
            connection.rollback()
    if as_json:
        show_json([_difference(one) for one in done])
        return
    for line in definitions.lines(done) or [f"{file or 'the code'} has no definitions"]:
        click.echo(line)
    if dry_run:
        click.echo("dry run: nothing was changed")


definitions_command.add_command(preview_command)


@definitions_command.command("pause")
@click.argument("name")
@click.option("--skip-due", is_flag=True, help="Also skip the nominal times that are due but not yet processed.")
@json_option
def pause_command(name: str, skip_due: bool, as_json: bool) -> None:
    """Stop enqueuing runs of NAME.  Later nominal times are recorded as skipped.

    Nominal times that are due but not yet processed, for example because no worker was running, are processed first, as
    if there were no pause; with --skip-due, they are skipped.
    """
    with command_transaction() as connection:
        row = definitions.pause(connection, name, catalogue(), operator(), skip_due=skip_due)
    _answer(row, f"definition {name} has been paused since {shown(row['paused_at'])}", as_json)


@definitions_command.command("resume")
@click.argument("name")
@json_option
def resume_command(name: str, as_json: bool) -> None:
    """Resume enqueuing runs of NAME, from now on."""
    with command_transaction() as connection:
        row = definitions.resume(connection, name, catalogue(), operator())
    due = f"due next {shown(_local(row)['next_run_at'])}" if row["next_run_at"] else "without a schedule"
    _answer(row, f"definition {name} is active, {due}", as_json)


@definitions_command.command("run-now")
@click.argument("name")
@json_option
def run_now_command(name: str, as_json: bool) -> None:
    """Enqueue one run of NAME now, in addition to its schedule."""
    with command_transaction() as connection:
        outcome = definitions.run_now(connection, name, catalogue(), operator())
        run = get_run(connection, outcome.run_id)
    if as_json:
        show_json(run)
    elif outcome.replayed:
        click.echo(f"run {outcome.run_id} holds the natural key: nothing added (`rowcall runs show {outcome.run_id}`)")
    else:
        click.echo(f"run {outcome.run_id} queued")


@definitions_command.command("remove")
@click.argument("name")
@json_option
def remove_command(name: str, as_json: bool) -> None:
    """Remove definition NAME.  Its runs stay, and those that are waiting will still run."""
    with command_transaction() as connection:
        row = definitions.remove(connection, name, operator())
    _answer(row, f"definition {name} is removed", as_json)
    if name in catalogue().definitions:
        again = f"the code declares {name}, so the next `rowcall migrate` creates it again"
        click.echo(f"{again}: to stop it for good, pause it (`rowcall definitions pause {name}`) instead", err=True)


def _difference(one: Difference) -> dict[str, Any]:
    changes = {name: {"before": was, "after": now} for name, (was, now) in one.changes.items()}
    return {"name": one.name, "change": one.change, "changes": changes}


def _answer(row: Row, sentence: str, as_json: bool) -> None:
    if as_json:
        show_json(_with_state(row))
    else:
        click.echo(sentence)


def _local(row: Row) -> dict[str, Any]:
    """Return when the definition is due next, in its time zone."""
    due = row["next_run_at"]
    return {"next_run_at": due and _by_its_clock(row, due)}


def _next(row: Row) -> dict[str, Any]:
    """Return when the definition runs next, in its time zone, or that it is paused."""
    return {"next_run_at": PAUSED} if row["paused_at"] and row["next_run_at"] else _local(row)


def _without_occurrences(row: Row, last: Row, now: datetime) -> str:
    """Say why the definition has no occurrences."""
    if not row["schedule"]:
        return BY_HAND
    if row["next_run_at"] is None or row["next_run_at"] > now:
        return NONE_PASSED
    because = definitions.overdue(row, last, now) or NEXT_TICK
    return f"{shown(_local(row)['next_run_at'])} is due and not yet processed: {because}"


def _by_its_clock(row: Row, moment: datetime) -> datetime:
    """Convert a time to the definition's zone; keep the time if the zone is invalid."""
    with suppress(ScheduleInvalid):
        return moment.astimezone(zone_named(row["time_zone"]))
    return moment


def _with_problem(row: Row, last: Row, now: datetime) -> dict[str, Any]:
    """Return a definition with its state and its problem, for JSON."""
    return {**_with_state(row), "problem": _problem(row, last, now)}


def _problem(row: Row, last: Row, now: datetime) -> str | None:
    """Return why the definition's next nominal time cannot be processed, or has not been."""
    because = definitions.overdue(row, last, now)
    return definitions.problem_of(row, catalogue()) or (f"overdue: {because}" if because else None)


def _with_state(row: Row) -> dict[str, Any]:
    """Return a definition with its state, for JSON."""
    state = {name: row[name] for name in STATE}
    return {"name": row["name"], **definitions.as_sent(definitions.Content.of(row)), **state}
