"""`rowcall definitions preview`: what would run, and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import click

from shared import definitions
from shared.commands.output import json_option, show_json, show_table
from shared.commands.session import command_transaction
from shared.definitions import preview
from shared.definitions.content import Content
from shared.errors import DefinitionNotFound, ScheduleInvalid
from shared.job_types import catalogue
from shared.schedule import moment

COLUMNS = ("wall", "nominal_at", "run_at", "outcome", "note")


@click.command("preview")
@click.argument("name", required=False)
@click.option("--schedule", help="An expression that is not saved yet, in place of NAME's.")
@click.option("--time-zone", help="Its zone.  [default: NAME's, else UTC]")
@click.option("--catch-up", type=click.Choice(["skip", "latest", "all"]), help="What becomes of missed times.")
@click.option("--max-lateness", help="How late a missed time may still run, such as 6h.")
@click.option("--overlap", type=click.Choice(["allow", "skip"]), help="Whether runs may overlap.")
@click.option("--jitter", help="How far runs are spread, such as 5m.")
@click.option(
    "--missing-time", type=click.Choice(["after", "skip"]), help="A time that spring's clock change leaves out."
)
@click.option(
    "--repeated-time", type=click.Choice(["once", "twice"]), help="A time that autumn's clock change repeats."
)
@click.option("--at", "--from", "at", default="now", show_default=True, help='From when, such as "tomorrow 09:00".')
@click.option("--until", help="What would run up to then; without NAME, of all definitions.")
@click.option("--asleep", "until_awake", metavar="UNTIL", help="As if nothing was awake from --at to then.")
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many times to show.")
@json_option
def preview_command(
    name: str | None, at: str, until: str | None, until_awake: str | None, count: int, as_json: bool, **changes: Any
) -> None:
    """Show the next times of definition NAME, or of an expression that is not saved yet.

    \b
    rowcall definitions preview nightly --at "tomorrow 09:00" --count 10
    rowcall definitions preview --schedule "0 9 * * MON" --time-zone Europe/Berlin
    rowcall definitions preview --at today --until tomorrow
    rowcall definitions preview nightly --at "today 02:00" --asleep "today 08:00"
    """
    if until and until_awake:
        raise click.UsageError("say --until or --asleep, not both")
    with command_transaction() as connection:
        now = definitions.clock(connection)
        chosen = _chosen(definitions.list_definitions(connection), name, changes)
    zone = chosen[0][1].zone if len(chosen) == 1 else ZoneInfo("UTC")
    start = _moment(at, now, zone, "--at")
    if until or until_awake:
        end = _moment(until or until_awake or "", now, zone, "--until" if until else "--asleep")
        if end <= start:
            raise click.UsageError(f"the end, {end.isoformat()}, is not after --at, {start.isoformat()}")
        shown = (preview.between if until else preview.through_outage)(chosen, start, end)
    elif len(chosen) != 1:
        raise click.UsageError("say NAME or --schedule; all definitions together need an end, with --until")
    else:
        shown = preview.coming(*chosen[0], start, count)
    _show(shown, chosen, as_json)


def _chosen(rows: Sequence[Any], name: str | None, changes: dict[str, Any]) -> list[tuple[str, Content]]:
    """The definitions to show: the named one, the one that is only described, or all."""
    told = {field: value for field, value in changes.items() if value is not None}
    known = {row["name"]: Content.of(row) for row in rows}
    if name is None and "schedule" not in told:
        if told:
            raise click.UsageError(f"--{next(iter(told)).replace('_', '-')} needs NAME or --schedule")
        return sorted(known.items())
    if name is None:
        return [("preview", definitions.checked("preview", {"job_type": "noop", **told}, catalogue()))]
    if name not in known:
        raise DefinitionNotFound(name)
    return [(name, definitions.checked(name, {**definitions.told(known[name]), **told}, catalogue()))]


def _moment(text: str, now: datetime, zone: ZoneInfo, option: str) -> datetime:
    try:
        return moment(text, now, zone)
    except ScheduleInvalid as error:
        raise click.UsageError(f"{option}: {error}") from None


def _show(shown: Sequence[preview.Shown], chosen: Sequence[tuple[str, Content]], as_json: bool) -> None:
    rows = [vars(one) for one in shown]
    if as_json:
        show_json(rows)
        return
    if len(chosen) == 1 and chosen[0][1].schedule is not None:
        content = chosen[0][1]
        click.echo(
            f"{content.schedule} in {content.time_zone}, catch_up {content.catch_up}, overlap {content.overlap},"
        )
        click.echo(
            f"a time that does not exist: {content.missing_time}; one that comes twice: {content.repeated_time}\n"
        )
    columns = COLUMNS if len(chosen) == 1 else ("name", *COLUMNS)
    show_table(rows, columns, empty="nothing would run")
