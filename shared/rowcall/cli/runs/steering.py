"""`rowcall runs retry|cancel|run-now|reschedule|clone`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import click

from rowcall import effects, queue
from rowcall.access.audit import Operator, wrong_with_reason
from rowcall.base import settings
from rowcall.base.database import Connection, Row, all_or_nothing, fetch_one
from rowcall.base.errors import FilterInvalid, RowcallError, RunNotFound, TransitionRefused
from rowcall.cli.parameters import JsonObject, Moment
from rowcall.cli.runs.filtered import filtered
from rowcall.cli.runs.many import Many, many_options
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.output import json_option, show_json, shown, wrapped
from rowcall.queue import Filter
from rowcall.queue.claims.holders import is_unbegun
from rowcall.queue.operations import Action
from rowcall.queue.views.live_workers import HOLDER
from rowcall.status import Status

Event = Callable[[Connection, int, Operator], Row]
Warn = Callable[[Connection, Row], list[str]]

any_runs = click.argument("run_ids", metavar="[RUN_ID]...", type=int, nargs=-1)


@click.command("retry")
@any_runs
@filtered
@many_options
@json_option
def retry_command(run_ids: Sequence[int], criteria: Filter, many: Many, as_json: bool) -> None:
    """Queue dead or cancelled runs again: by id, or all that match the options."""
    if many.selects(run_ids, criteria):
        many.carry_out(Action.RETRY, criteria, as_json)
    else:
        _steer(run_ids, queue.retry, many.reason, as_json, warn=_unresolved)


@click.command("cancel")
@any_runs
@filtered
@many_options
@click.option("--force", is_flag=True, help="Do not wait for the run's worker; refuse its later writes.")
@json_option
def cancel_command(run_ids: Sequence[int], criteria: Filter, many: Many, force: bool, as_json: bool) -> None:
    """Cancel waiting runs, and ask the workers of running ones to stop them: by id, or all that match the options."""
    if not many.selects(run_ids, criteria):
        _steer(run_ids, functools.partial(queue.cancel_any, force=force), many.reason, as_json)
    elif force:
        raise click.UsageError("--force does not wait for workers, so it needs ids, not a filter")
    else:
        many.carry_out(Action.CANCEL, criteria, as_json)


@click.command("run-now")
@any_runs
@filtered
@many_options
@json_option
def run_now_command(run_ids: Sequence[int], criteria: Filter, many: Many, as_json: bool) -> None:
    """Make waiting runs due at once: by id, or all that match the options and are not due yet."""
    if many.selects(run_ids, criteria):
        many.carry_out(Action.RUN_NOW, criteria, as_json)
    else:
        _steer(run_ids, queue.run_now, many.reason, as_json)


@click.command("reschedule")
@any_runs
@click.option("--to", type=Moment(), required=True, help="The time at which the runs should be due.")
@filtered
@many_options
@json_option
def reschedule_command(run_ids: Sequence[int], to: datetime, criteria: Filter, many: Many, as_json: bool) -> None:
    """Make waiting runs due at another time: by id, or all that match the options."""
    if many.selects(run_ids, criteria):
        many.carry_out(Action.RESCHEDULE, criteria, as_json, to)
    else:
        _steer(run_ids, functools.partial(queue.reschedule, run_at=to), many.reason, as_json)


@click.command("clone")
@click.argument("run_id", type=int)
@click.option("--payload", type=JsonObject(), help="Payload, a JSON object.  [default: the original's]")
@click.option("--run-at", type=Moment(), help="Not before this time.  [default: now]")
@click.option("--queue", "queue_name", help="Queue.  [default: the original's]")
@click.option("--priority", type=int, help="Priority; a lower number is more urgent.  [default: the original's]")
@click.option("--max-attempts", type=int, help="Give up after this many attempts.  [default: the original's]")
@click.option("--key", help="Idempotency key: a repeated request with the same key and changes returns the same run.")
@json_option
def clone_command(
    run_id: int, payload: dict[str, Any] | None, run_at: datetime | None, queue_name: str | None, **options: Any
) -> None:
    """Enqueue a copy of run RUN_ID with these changes."""
    as_json = options.pop("as_json")
    with command_transaction() as connection:
        outcome = queue.clone(
            connection, run_id, operator(), payload=payload, run_at=run_at, queue=queue_name, **options
        )
        row = queue.get_run(connection, outcome.run_id)
    if outcome.replayed and not as_json:
        click.echo(f"run {outcome.run_id} already exists: nothing added")
    else:
        _report(row, as_json)


def _nothing(connection: Connection, run: Row) -> list[str]:
    return []


def _unresolved(connection: Connection, run: Row) -> list[str]:
    """Warn about effects with an unknown outcome, on which the next attempt would fail."""
    return [
        f"it is unknown whether effect {one['id']} of {one['kind']} happened, so run {run['id']} cannot succeed: first"
        f" resolve it with `rowcall effects resolve {one['kind']} {one['id']} --happened` or `--did-not-happen`, and"
        " then retry the run if it is dead again"
        for one in effects.unresolved_effects(connection, run["id"])
    ]


def _steer(run_ids: Sequence[int], event: Event, reason: str | None, as_json: bool, warn: Warn = _nothing) -> None:
    """Apply an operator's event to each run and report it; a refusal does not stop the others."""
    if complaint := wrong_with_reason(reason):
        raise FilterInvalid({"reason": complaint})
    who = replace(operator(), reason=reason)
    rows, refusals, warnings, asked = [], [], list[str](), dict[int, str]()
    with command_transaction() as connection:
        for run_id in dict.fromkeys(run_ids):
            try:
                with all_or_nothing(connection):
                    rows.append(event(connection, run_id, who))
                    asked[run_id] = _asked(connection, rows[-1])
                    warnings += warn(connection, rows[-1])
            except (RunNotFound, TransitionRefused) as refusal:
                refusals.append(str(refusal))
    for row in rows:
        _report(row, as_json, asked[row["id"]])
    for warning in warnings:
        click.echo(wrapped(f"rowcall: {warning}", errors=True), err=True)
    if refusals:
        raise RowcallError("; ".join(refusals))


def _asked(connection: Connection, row: Row) -> str:
    """Say what will follow a request to cancel a running run, because it may have no live worker."""
    if row["status"] != Status.RUNNING or not row["cancel_requested_at"]:
        return ""
    force = f"`rowcall runs cancel {row['id']} --force` cancels it now"
    if is_unbegun(row["locked_by"]):
        return f": its message waits, and the consumer that receives it cancels the run; {force}"
    held = fetch_one(connection, HOLDER, {**row, "heartbeat": settings.read().heartbeat})
    if held is None or not held["late"]:
        return ", and its worker has been asked to stop it"
    since, until = shown(held["heartbeat_at"]), shown(row["locked_until"])
    otherwise = f"otherwise another worker cancels it after its lease ends at {until}"
    if held["expired"]:
        otherwise = f"its lease ended at {until}, so the next worker that serves its queue cancels it too"
    return f", but its worker has been silent since {since}: {force}; {otherwise}"


def _report(row: Row, as_json: bool, asked: str = "") -> None:
    if as_json:
        show_json(row)
        return
    click.echo(wrapped(f"run {row['id']} is {row['status']}{asked}"))
