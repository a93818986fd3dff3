"""`rowcall erase`: erase a person's data from finished runs."""

from __future__ import annotations

from collections.abc import Iterator

import click

from rowcall.base.database import LARGEST_ID, Connection, commit
from rowcall.base.errors import RowcallError, RunNotFound
from rowcall.cli.runs.filtered import filtered, in_words
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.confirm import confirm, yes_option
from rowcall.cli.terminal.output import json_option, show_json
from rowcall.effects.erase import erase_details
from rowcall.queue import Filter
from rowcall.queue.retention.erase import Found, erase, find, find_ids


@click.command("erase")
@click.argument("run_ids", metavar="[RUN_ID]...", type=click.IntRange(1, LARGEST_ID), nargs=-1)
@filtered
@click.option("--dry-run", is_flag=True, help="Only count the matching runs.")
@yes_option
@json_option
def erase_command(run_ids: tuple[int, ...], criteria: Filter, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase the content of finished runs, for a person who asks for their data to be deleted.

    Select the runs by id, or by filters such as --payload '{"user_id": 7}'.

    Payload, result, progress, errors, attempts and logs are erased, and the details of the runs' effects, such as a
    mail's recipient.  Status, times, keys and references stay, so that nothing is done twice.  This cannot be undone.
    """
    if bool(run_ids) is not criteria.leaves_all_open:
        raise click.UsageError("give either ids or filters, such as --payload '{\"user_id\": 7}'")
    named = f"{'run' if len(run_ids) == 1 else 'runs'} {', '.join(map(str, run_ids))}"
    selected = named if run_ids else f"all finished runs with {in_words(criteria)}"
    if not dry_run:
        confirm(f"this erases the content of {selected} permanently (--dry-run counts them)", yes)
    counts = {"matched": 0, "erased": 0, "effects": 0}
    unfinished: list[int] = []
    with command_transaction() as connection:
        for found in _pages(connection, run_ids, criteria):
            counts["matched"] += len(found.finished)
            unfinished += found.unfinished
            if not dry_run:
                erased = erase(connection, found.finished, operator())
                counts["effects"] += erase_details(connection, erased)
                counts["erased"] += len(erased)
            commit(connection)
    if as_json:
        show_json({**counts, "unfinished": unfinished, "dry_run": dry_run})
    elif dry_run:
        click.echo(f"finished runs that match: {counts['matched']}; dry run: nothing was erased")
    else:
        click.echo(f"runs erased: {counts['erased']}; effects erased: {counts['effects']}")
    _complain(0 if dry_run else counts["matched"] - counts["erased"], unfinished)


def _pages(connection: Connection, run_ids: tuple[int, ...], criteria: Filter) -> Iterator[Found]:
    """Find the runs page by page; the caller erases each page, and commits, before the next."""
    if run_ids:
        found = find_ids(connection, run_ids)
        if missing := set(run_ids) - {*found.finished, *found.unfinished}:
            raise RunNotFound(min(missing))
        yield found
        return
    cursor: str | None = None
    while True:
        found = find(connection, criteria, cursor)
        yield found
        cursor = found.next
        if cursor is None:
            return


def _complain(locked: int, unfinished: list[int]) -> None:
    """Fail if the data of a run that matches is still there."""
    reasons = []
    if unfinished:
        shown = ", ".join(map(str, unfinished[:10])) + (", ..." if len(unfinished) > 10 else "")
        reasons.append(
            f"matching runs that have not finished: {len(unfinished)} (run {shown}); wait for them, or `rowcall runs"
            f" cancel {unfinished[0]}`"
        )
    if locked:
        reasons.append(f"matching runs that other transactions have locked: {locked}; run the same command again")
    if reasons:
        raise RowcallError("; ".join(reasons))
