"""`rowcall definitions preview`: what would run, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import click
from marshmallow import fields

from rowcall import definitions
from rowcall.base.database import Row
from rowcall.base.errors import DefinitionInvalid, DefinitionNotFound, ScheduleInvalid
from rowcall.cli.definitions.unapplied import not_applied
from rowcall.cli.session import command_transaction
from rowcall.cli.terminal.output import show_json, wrapped
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import preview
from rowcall.definitions.content import OPTIONS, SENT, Content
from rowcall.definitions.preview import Previewed, Shown
from rowcall.job_types import catalogue
from rowcall.schedule import moment

COLUMNS = ("wall", "nominal_at", "run_at", "outcome", "note")

# The number of times shown without --count: after --at, and, on a terminal, up to --until or --asleep.
NEXT, ON_A_TERMINAL = 10, 50

# The name of a schedule that is not saved.
UNSAVED = "preview"

BY_HAND = "it has no schedule: it runs only on `rowcall definitions run-now`"


def _content_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each field of a definition that OPTIONS lists."""
    for name, meaning in reversed(OPTIONS.items()):
        field = SENT[name]
        form = click.Choice([word.value for word in field.enum]) if isinstance(field, fields.Enum) else None
        command = click.option(_option(name), type=form, help=meaning)(command)
    return command


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


@click.command("preview")
@click.argument("name", required=False)
@_content_options
@click.option(
    "--at", default="now", metavar="TIME", show_default=True, help='The time to start from, such as "tomorrow 09:00".'
)
@click.option(
    "--until", metavar="TIME", help="Show everything that would run until this time; without NAME, for all definitions."
)
@click.option("--asleep", metavar="TIME", help="Show what an outage from --at to this time would do.")
@click.option(
    "--count",
    type=click.IntRange(1, 1000),
    help=f"How many nominal times to show.  [default: {NEXT}; with --until or --asleep, all, or the first"
    f" {ON_A_TERMINAL} on a terminal]",
)
@table_options
def preview_command(
    name: str | None, at: str, until: str | None, asleep: str | None, count: int | None, table: Table, **changes: Any
) -> None:
    """Show the next times of definition NAME, or of an expression that is not yet saved.

    \b
    rowcall definitions preview nightly --at "tomorrow 09:00" --count 10
    rowcall definitions preview --schedule "0 9 * * MON" --time-zone Europe/Berlin
    rowcall definitions preview --at today --until tomorrow
    rowcall definitions preview nightly --at "today 02:00" --asleep "today 08:00"

    A TIME without an offset is in the definition's time zone, or in UTC when you preview all definitions.
    """
    given = {field: value for field, value in changes.items() if value is not None}
    with command_transaction() as connection:
        now = definitions.clock(connection)
        selected = _selected(definitions.list_definitions(connection), name, given)
    alone = name is not None or "schedule" in given
    zone = selected[0].content.zone if alone else ZoneInfo("UTC")
    start = _moment("--at", at, now, zone)
    ends = {
        option: _moment(option, text, now, zone)
        for option, text in (("--until", until), ("--asleep", asleep))
        if text is not None
    }
    if ends:
        shown = _up_to(ends, selected, start)[:count]
    elif alone:
        shown = preview.coming(selected[0], start, count or NEXT)
    else:
        raise click.UsageError("specify NAME or --schedule, or --until for all definitions")
    if table.as_json:
        show_json([vars(one) for one in shown])
    else:
        first = shown[:ON_A_TERMINAL] if count is None and table.cuts else shown
        _show(first, selected[0] if alone else None, table)
        _say_what_is_cut(len(first), len(shown))


def _up_to(ends: Mapping[str, datetime], selected: Sequence[Previewed], start: datetime) -> list[Shown]:
    if len(ends) > 1:
        raise click.UsageError("use --until or --asleep, not both")
    [(option, end)] = ends.items()
    if end <= start:
        raise click.UsageError(f"{option}, {end.isoformat()}, is not after --at, {start.isoformat()}")
    return (preview.between if option == "--until" else preview.through_outage)(selected, start, end)


def _selected(rows: Sequence[Row], name: str | None, given: dict[str, Any]) -> list[Previewed]:
    """Return the definitions to show: the named one, the one given by options, or all."""
    known = {row["name"]: Previewed(row["name"], Content.of(row), row["paused_at"] is not None) for row in rows}
    if name is None and "schedule" not in given:
        if given:
            raise click.UsageError(f"{_option(next(iter(given)))} needs NAME or --schedule")
        return [known[each] for each in sorted(known)]
    if name is not None and name not in known:
        known[name] = _declared(name, known)
        click.echo(not_applied(name), err=True)
    saved = definitions.as_sent(known[name].content) if name else {"job_type": "noop"}
    try:
        content = definitions.checked(name or UNSAVED, {**saved, **given}, catalogue())
    except DefinitionInvalid as error:
        wrong = [f"{_option(field)}: {error.fields[field]}" for field in given if field in error.fields]
        if not wrong:
            raise
        raise click.UsageError("; ".join(wrong)) from None
    return [known[name]._replace(content=content) if name else Previewed(UNSAVED, content)]


def _declared(name: str, known: Iterable[str]) -> Previewed:
    """Return a definition that only the code has."""
    try:
        declaration = catalogue().definitions[name]
    except KeyError:
        raise DefinitionNotFound(name, known) from None
    return Previewed(name, definitions.checked(name, declaration.content, catalogue()))


def _moment(option: str, text: str, now: datetime, zone: ZoneInfo) -> datetime:
    try:
        return moment(text, now, zone)
    except ScheduleInvalid as error:
        raise click.UsageError(f"{option}: {error}") from None


def _show(shown: Sequence[Shown], alone: Previewed | None, table: Table) -> None:
    """Print a table; for a single definition, print its rules first."""
    content = alone and alone.content
    if content is not None and content.schedule is not None:
        rules = definitions.in_words(definitions.as_sent(content))
        click.echo(wrapped(f"{content.schedule} in {content.time_zone}"))
        others = [name for name in OPTIONS if name not in ("schedule", "time_zone") and rules[name] is not None]
        click.echo(wrapped(", ".join(f"{name} {rules[name]}" for name in others)))
        if alone and alone.paused:
            click.echo(wrapped(f"paused: its times are skipped until `rowcall definitions resume {alone.name}`"))
        click.echo()
    empty = BY_HAND if content is not None and content.schedule is None else "nothing would run"
    columns: tuple[str, ...] = COLUMNS if content else ("name", *COLUMNS)
    if table.cuts:
        rows = _in_short(shown)
        columns = tuple(name for name in columns if name != "run_at" or _run_later(shown))
    else:
        rows = [vars(one) for one in shown]
    table.show(rows, columns, empty=empty, whole=COLUMNS)


def _say_what_is_cut(first: int, found: int) -> None:
    cut_too = found == preview.SHOWN_MOST
    if first < found:
        click.echo(f"these are the first {first} of {found}{' or more' if cut_too else ''}: --count shows more")
    elif cut_too:
        click.echo(f"these are the first {preview.SHOWN_MOST}: continue with --at")


def _run_later(shown: Sequence[Shown]) -> bool:
    """Return whether a run is due at a time other than its nominal time."""
    return any(one.run_at not in (None, one.nominal_at) for one in shown)


def _in_short(shown: Sequence[Shown]) -> list[dict[str, Any]]:
    """Return the rows with short times in UTC, beside the local time in words."""
    return [
        {
            **vars(one),
            "nominal_at": f"{one.nominal_at.astimezone(UTC):%Y-%m-%d %H:%MZ}",
            "run_at": one.run_at and f"{one.run_at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}",
        }
        for one in shown
    ]
