"""Operations, for `rowcall runs retry|cancel|run-now|reschedule` with a filter."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import click

from rowcall import effects
from rowcall.base.database import Row, commit
from rowcall.base.errors import RowcallError
from rowcall.base.errors.sentences import has_status
from rowcall.cli.runs.filtered import misspelt
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.output import show_json, wrapped
from rowcall.queue import Filter, operations
from rowcall.queue.operations import Action, Preview, Requested
from rowcall.queue.operations.lists import public
from rowcall.status import Status


@dataclass(frozen=True)
class Many:
    """The options of an operation other than the filter."""

    everything: bool = False
    dry_run: bool = False
    limit: int | None = None
    canary: bool = False
    reason: str | None = None
    wait: bool = True

    def selects(self, run_ids: Sequence[int], criteria: Filter) -> bool:
        """Return whether the filter, rather than ids, selects the runs."""
        by_filter = replace(self, reason=None) != Many() or not criteria.leaves_all_open
        if run_ids and not criteria.leaves_all_open:
            raise click.UsageError("specify ids or filters such as --status dead, not both")
        if run_ids and by_filter:
            raise click.UsageError(
                "ids cannot be combined with --all, --dry-run, --limit, --canary or --no-wait: these go with filters"
                " such as --status dead"
            )
        if not run_ids and criteria.leaves_all_open and not self.everything:
            raise click.UsageError("specify ids, filters such as --status dead, or --all")
        return by_filter

    def carry_out(self, action: Action, criteria: Filter, as_json: bool, run_at: datetime | None = None) -> None:
        """Start an operation, and work on it alongside the workers until it needs no more work."""
        requested = Requested(action, criteria, self.everything, self.limit, run_at, self.canary, self.reason)
        with command_transaction() as connection:
            unresolved = effects.unresolved_runs(connection) if action is Action.RETRY else None
            found = operations.preview(connection, requested, unresolved=unresolved)
            if self.dry_run:
                _show_preview(found, as_json, "" if found.matched else misspelt(criteria))
                return
            if not found.matched and found.counted_all and not as_json:
                question = misspelt(criteria)
                click.echo("; ".join(filter(None, ("no runs match, and nothing was changed", question))))
                return
            operation = operations.start(connection, requested, operator()).operation
            commit(connection)
            if found.unresolved:
                click.echo(wrapped(f"rowcall: {_unresolved(found)}", errors=True), err=True)
            try:
                while self.wait and operation["status"] in operations.ACTIVE:
                    operation = operations.carry_on(connection, operation["id"])
                    commit(connection)
                    _show_progress(operation)
            except KeyboardInterrupt:
                raise RowcallError(_left_to_workers(operation["id"])) from None
        report(operation, as_json)
        if found.left_out:
            least = "" if found.counted_all else "at least "
            match, them = ("matches", "it") if found.left_out == 1 else ("match", "them")
            click.echo(f"{least}{found.left_out:,} more {match}: repeat the command to change {them} too", err=True)
        if operation["refused"]:
            many = "1 run was" if operation["refused"] == 1 else f"{operation['refused']:,} runs were"
            reasons = f"`rowcall operations refusals {operation['id']}` gives the reasons"
            raise RowcallError(f"{many} not changed: {reasons}")


def _show_preview(found: Preview, as_json: bool, question: str) -> None:
    if as_json:
        show_json({**vars(found), "dry_run": True})
        return
    ids = ", ".join(str(run["id"]) for run in found.samples)
    such_as = f", such as run{'' if len(found.samples) == 1 else 's'} {ids}" if ids else ""
    many = f"{found.matched + found.left_out:,}{'' if found.counted_all else ' or more'} match"
    limited = f", and --limit selects the newest {found.matched:,}" if found.left_out else ""
    statuses = f" ({_in_words(found.by_status)})" if found.by_status else ""
    asks = f"; {question}" if question else ""
    click.echo(wrapped(f"{many}{limited}{statuses}{such_as}; dry run: nothing was changed{asks}"))
    if found.unresolved:
        click.echo(wrapped(_unresolved(found)))


def _unresolved(found: Preview) -> str:
    return (
        f"{found.unresolved:,} of these runs cannot succeed before you resolve an effect that may have happened:"
        " `rowcall effects list --state unknown --state intent`"
    )


def _in_words(by_status: Mapping[str, int]) -> str:
    return ", ".join(f"{by_status[status]:,} {status}" for status in Status if status in by_status)


def _show_progress(operation: Row) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{counts(operation)}", err=True, nl=operation["status"] not in operations.ACTIVE)


def counts(operation: Row) -> str:
    """Say how far an operation has progressed."""
    least = "" if operation["counted_all"] else " or more"
    refused = f", {operation['refused']:,} refused" if operation["refused"] else ""
    # One count for both, because a running run ends only when its worker stops it, or its lease has expired.
    done = "cancelled or asked to stop" if operation["action"] == Action.CANCEL.word else "changed"
    return f"{operation['matched']:,}{least} matched, {operation['changed']:,} {done}{refused}"


def report(operation: Row, as_json: bool) -> None:
    """Print an operation, and what to do next."""
    if as_json:
        show_json(public(operation))
        return
    number, status = operation["id"], operation["status"]
    click.echo(f"operation {number} {has_status(status)}: {counts(operation)}")
    if status == operations.OperationStatus.WAITING:
        click.echo(
            f"its canary is run {operation['canary_run_id']}: `rowcall operations continue {number}` changes the others"
        )
    elif status in operations.ACTIVE:
        click.echo(f"workers carry it out: `rowcall operations show {number}` shows its progress")


def _left_to_workers(number: int) -> str:
    return (
        f"workers continue operation {number}: `rowcall operations show {number}` shows its progress,"
        f" and `rowcall operations stop {number}` stops it"
    )


def many_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add these options, and pass them to the command as `many`."""

    @functools.wraps(command)
    def with_many(
        everything: bool,
        dry_run: bool,
        limit: int | None,
        canary: bool,
        reason: str | None,
        wait: bool,
        **options: object,
    ) -> None:
        command(many=Many(everything, dry_run, limit, canary, reason, wait), **options)

    for option in (
        click.option(
            "--wait/--no-wait",
            default=True,
            help="Help the workers with the operation until it is done, or leave it to them.  [default: --wait]",
        ),
        click.option("--reason", help="The reason, shown with the operation and in the audit log."),
        click.option(
            "--canary",
            is_flag=True,
            help="Change only the first run; the operation then waits for `rowcall operations continue`.",
        ),
        click.option(
            "--limit",
            type=click.IntRange(min=1),
            help="Change at most this many runs, the newest first.  [default: all]",
        ),
        click.option("--dry-run", is_flag=True, help="Only count the matching runs."),
        click.option(
            "--all", "everything", is_flag=True, help="Change every run; needed if neither ids nor filters are given."
        ),
    ):
        with_many = option(with_many)
    return with_many
