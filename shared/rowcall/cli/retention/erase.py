"""`rowcall erase`: erase a person's data from finished runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from rowcall.base.database import LARGEST_ID, Connection, PgConnection, commit
from rowcall.base.errors import RowcallError, RunNotFound
from rowcall.cli.runs.filtered import filtered, in_words
from rowcall.cli.session import command_transaction, needs_rights_of, operator
from rowcall.cli.terminal.confirm import confirm, yes_option
from rowcall.cli.terminal.output import json_option, show_json
from rowcall.definitions.erase import Matching, erase_definition, find_definitions
from rowcall.effects.erase import erase_details, runs_with_open_effects
from rowcall.queue import Filter
from rowcall.queue.retention.erase import Found, erase, find, find_ids


@click.command("erase")
@click.argument("run_ids", metavar="[RUN_ID]...", type=click.IntRange(1, LARGEST_ID), nargs=-1)
@filtered
@click.option("--dry-run", is_flag=True, help="Only count the matching runs.")
@yes_option
@json_option
def erase_command(run_ids: tuple[int, ...], criteria: Filter, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase the content of finished runs, for a person who has asked for their data to be deleted.

    Select the runs by id, or by filters such as --payload '{"user_id": 7}'.

    The payload, result, progress, errors, attempts and log are erased, along with the details of the runs' effects,
    such as an email's recipient.  Status, times, keys and references stay, so that nothing is done twice.  This cannot
    be undone.

    If --payload is the only filter, this also erases matching payloads of removed definitions, and matching earlier
    payloads of definitions that still exist.
    """
    if bool(run_ids) is not criteria.leaves_all_open:
        raise click.UsageError("specify either ids or filters, such as --payload '{\"user_id\": 7}'")
    named = f"{'run' if len(run_ids) == 1 else 'runs'} {', '.join(map(str, run_ids))}"
    selected = named if run_ids else f"all finished runs with {in_words(criteria)}"
    if not dry_run:
        confirm(f"this erases the content of {selected} permanently (--dry-run only counts)", yes)
    counts = {"matched": 0, "erased": 0, "effects": 0}
    unfinished: list[int] = []
    doubtful: list[int] = []
    definitions = Definitions(criteria)
    with needs_rights_of("the owner of the tables"), command_transaction() as connection:
        for found in _pages(connection, run_ids, criteria):
            counts["matched"] += len(found.finished)
            unfinished += found.unfinished
            doubtful += runs_with_open_effects(connection, found.finished)
            if not dry_run:
                erased = erase(connection, found.finished, operator())
                counts["effects"] += erase_details(connection, erased)
                counts["erased"] += len(erased)
            commit(connection)
        definitions.find(connection)
        if not dry_run:
            definitions.erase(connection)
    counts |= {"definitions_matched": len(definitions.found), "definitions_erased": definitions.erased}
    if as_json:
        live = [one.name for one in definitions.live]
        show_json({**counts, "unfinished": unfinished, "live_definitions": live, "dry_run": dry_run})
    else:
        click.echo((_PREVIEW if dry_run else _DONE).format(**counts))
    if doubtful:
        click.echo(
            f"rowcall: effects of these runs may have happened: {_named(doubtful)}; `rowcall effects list --run"
            f" {doubtful[0]}` shows them; find out what happened, because a retry can no longer do it",
            err=True,
        )
    _complain(0 if dry_run else counts["matched"] - counts["erased"], unfinished, definitions.left(dry_run))


_PREVIEW = "finished runs that match: {matched}; definitions: {definitions_matched}; dry run: nothing was erased"
_DONE = "runs erased: {erased}; effects erased: {effects}; definitions erased: {definitions_erased}"


class Definitions:
    """The definitions that match the filter, if it consists only of a payload; any other filter concerns only runs."""

    def __init__(self, criteria: Filter) -> None:
        self._payload = criteria.payload if criteria == Filter(payload=criteria.payload) else None
        self.found: list[Matching] = []
        self.live: list[Matching] = []
        self.erased = 0

    def find(self, connection: Connection) -> None:
        """Find those that can be erased, and the live ones that must be changed first."""
        for one in find_definitions(connection, self._payload) if self._payload else ():
            (self.live if one.stays else self.found).append(one)

    def erase(self, connection: PgConnection) -> None:
        """Erase them, with a commit after each step."""
        for one in self.found:
            for done in erase_definition(connection, one, self._payload or {}, operator()):
                commit(connection)
                self.erased += done

    def left(self, dry_run: bool) -> list[str]:
        """Say which definitions still match."""
        reasons = []
        if self.live:
            names = ", ".join(one.name for one in self.live)
            reasons.append(
                f"matching definitions that have not been removed: {names}; change them, or `rowcall definitions remove"
                f" {self.live[0].name}`, and run the same command again"
            )
        if not dry_run and self.erased < len(self.found):
            locked = len(self.found) - self.erased
            reasons.append(
                f"matching definitions that other transactions have locked: {locked}; run the same command again"
            )
        return reasons


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


def _named(runs: Sequence[int]) -> str:
    named = ", ".join(map(str, runs[:10])) + (", ..." if len(runs) > 10 else "")
    return f"{'run' if len(runs) == 1 else 'runs'} {named}"


def _complain(locked: int, unfinished: list[int], definitions: list[str]) -> None:
    """Fail if data of a matching run or definition remains."""
    reasons = []
    if unfinished:
        reasons.append(
            f"matching runs that have not finished: {len(unfinished)} ({_named(unfinished)}); wait for them, or"
            f" `rowcall runs cancel {unfinished[0]}`"
        )
    if locked:
        reasons.append(f"matching runs that other transactions have locked: {locked}; run the same command again")
    if reasons := reasons + definitions:
        raise RowcallError("; ".join(reasons))
