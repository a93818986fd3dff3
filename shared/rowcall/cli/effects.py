"""`rowcall effects`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from rowcall import effects, queue
from rowcall.base import settings
from rowcall.base.database import Connection, Row, all_or_nothing, fetch_value
from rowcall.base.errors import EffectNotFound, EffectNotOpen, RowcallError, RunNotFound
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.confirm import confirm, yes_option
from rowcall.cli.terminal.group import Group
from rowcall.cli.terminal.output import json_option, show_json, wrapped
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.effects.operate import STATES
from rowcall.effects.restore import restored
from rowcall.queue.views.live_workers import LIVE_WORKERS, WORKERS_CONNECTED
from rowcall.status import Status

LISTED = ("kind", "id", "key", "state", "run_id", "intent_at", "reference", "refusal")
MORE = ("details",)

# The state of a run that was deleted, or whose payload was.
GONE = "gone"


@click.group("effects", cls=Group)
def effects_command() -> None:
    """Show the external side effects of runs, and resolve those with an unknown outcome."""


@effects_command.command("list")
@click.option("--kind", help="Only effects of this kind, such as sent_emails or one that your app declares.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only effects in this state.  May be repeated."
)
@click.option("--run", "run_id", type=int, help="Only effects of this run.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Show at most this many.")
@table_options
def list_command(kind: str | None, states: tuple[str, ...], run_id: int | None, limit: int, table: Table) -> None:
    """List the newest effects.  `--state unknown` lists those that an operator must resolve."""
    with command_transaction() as connection:
        rows = effects.page_of_effects(connection, kind, states, limit, run_id).effects
        now = clock(connection)
    given = [f"--kind {kind}"] * (kind is not None) + [f"--state {state}" for state in states]
    given += [f"--run {run_id}"] * (run_id is not None)
    table.show(rows, LISTED, now, f"no effects match {' '.join(given)}" if given else "there are no effects", MORE)


@effects_command.command("resolve")
@click.argument("kind")
@click.argument("effect_ids", metavar="EFFECT_ID...", type=int, nargs=-1, required=True)
@click.option("--happened", is_flag=True, help="The effects happened.")
@click.option("--did-not-happen", "not_happened", is_flag=True, help="The effects did not happen.")
@click.option("--reference", help="With --happened and one EFFECT_ID: the id that the provider gave the effect.")
@json_option
def resolve_command(
    kind: str, effect_ids: tuple[int, ...], happened: bool, not_happened: bool, reference: str | None, as_json: bool
) -> None:
    """Record whether one or more effects of KIND happened.  `rowcall effects list` shows kinds and ids.

    First find out whether they happened, for example in the mail server's log or the provider's dashboard.  After
    --did-not-happen, the next attempt of a run performs its effect.  Until an attempt begins the effect again, you can
    correct a wrong resolution with the other option, and a wrong reference with --happened and the right --reference.
    """
    if happened is not_happened:
        raise click.UsageError("use either --happened or --did-not-happen")
    if reference is not None:
        _check_reference(effect_ids, happened)
    rows, states, refusals = _resolve_each(kind, effect_ids, happened, reference)
    if as_json:
        for row in rows:
            show_json(row)
    elif rows:
        _report(rows, states, happened)
    if refusals:
        raise RowcallError("; ".join(refusals))


def _check_reference(effect_ids: Sequence[int], happened: bool) -> None:
    if not happened:
        raise click.UsageError("--reference needs --happened")
    if len(effect_ids) > 1:
        raise click.UsageError("--reference belongs to one effect: specify one id")


def _resolve_each(
    kind: str, effect_ids: Sequence[int], happened: bool, reference: str | None
) -> tuple[list[Row], dict[int, str], list[str]]:
    """Resolve each effect; return the effects, the states of their runs, and the refusals; none stops the others."""
    rows, refusals, states = [], [], {}
    with command_transaction() as connection:
        for effect_id in effect_ids:
            try:
                with all_or_nothing(connection):
                    rows.append(effects.resolve(connection, kind, effect_id, happened, operator(), reference))
                states[rows[-1]["run_id"]] = _state(connection, rows[-1]["run_id"])
            except (EffectNotFound, EffectNotOpen) as refusal:
                refusals.append(str(refusal))
    return rows, states, refusals


def _state(connection: Connection, run_id: int) -> str:
    """Return the run's status, or GONE if nothing can perform it again."""
    try:
        run = queue.get_run(connection, run_id)
    except RunNotFound:
        return GONE
    return GONE if run["pruned_at"] else str(run["status"])


def _report(rows: Sequence[Row], states: Mapping[int, str], happened: bool) -> None:
    what, next_attempt = (
        ("happened", "does not perform it again") if happened else ("not having happened", "performs it")
    )
    for row in rows:
        run_id, state = row["run_id"], states[row["run_id"]]
        future = f"the next attempt of run {run_id} {next_attempt}"
        if state == GONE:
            only = "" if happened else "; only a new run could perform it"
            future = f"run {run_id} was erased or pruned and cannot be retried{only}"
        elif state == Status.SUCCEEDED:
            future = f"run {run_id} has succeeded and has no next attempt"
        click.echo(f"effect {row['id']} of {row['kind']} is recorded as {what}: {future}")
    runs = [run_id for run_id, state in states.items() if state in (Status.DEAD, Status.CANCELLED)]
    if runs:
        them = "it" if len(runs) == 1 else "them"
        click.echo(f"`rowcall runs retry {' '.join(map(str, runs))}` continues {them}", err=True)


def _workers(connection: Connection) -> str:
    """Say how many workers run on the database; return "" if none does."""
    live = fetch_value(connection, LIVE_WORKERS, {"heartbeat": settings.read().heartbeat})
    if live:
        return f"{'1 worker is' if live == 1 else f'{live} workers are'} running on this database"
    return "workers are connected to this database" if fetch_value(connection, WORKERS_CONNECTED) else ""


@effects_command.command("after-restore")
@yes_option
@json_option
def after_restore_command(yes: bool, as_json: bool) -> None:
    """Record that the database was restored from a backup.  Do this before you start the workers.

    A run that was waiting when the backup was made may have sent its email since, and the restored effects tables do
    not show it.  After this command, no run from before the restore performs an effect that could happen twice: the
    effect becomes unknown, and you resolve it.  Effects that the receiver recognizes when they are repeated are
    performed as usual.
    """
    with command_transaction() as connection:
        working = _workers(connection)
    consequence = "for all existing runs, effects that must not be repeated will wait for your decision"
    confirm(f"{working}: stop every worker first; {consequence}" if working else consequence, yes)
    if working and yes:
        click.echo(wrapped(f"rowcall: {working}: stop every worker, and repeat the command", errors=True), err=True)
    with command_transaction() as connection:
        counts = restored(connection, operator())
    if as_json:
        show_json(counts)
        return
    click.echo(f"restore recorded; unfinished runs in the backup: {counts['runs']} (due: {counts['due']})")
    click.echo("next: start the workers; `rowcall effects list --state unknown` shows what to resolve", err=True)
