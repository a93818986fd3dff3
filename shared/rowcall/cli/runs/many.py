"""Bulk changes, for `rowcall runs retry|cancel`: all runs that the filter matches, page by page."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from rowcall import queue
from rowcall.base.database import commit
from rowcall.base.errors import RowcallError
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.output import show_json
from rowcall.queue import Action, Filter
from rowcall.queue.bulk import CHANGED_MOST

# Why runs that match may not be changed.
REFUSED = {
    Action.RETRY: "other transactions have locked or changed them, or other runs hold their natural keys",
    Action.CANCEL: "other transactions have locked or changed them",
}


@dataclass(frozen=True)
class Many:
    """The options of a bulk change other than the filter."""

    everything: bool
    dry_run: bool
    limit: int | None

    def selects(self, run_ids: Sequence[int], criteria: Filter) -> bool:
        """Return whether the filter selects the runs, and not ids."""
        by_filter = self != Many(False, False, None) or not criteria.leaves_all_open
        if run_ids and by_filter:
            raise click.UsageError("specify ids or filters such as --status dead, not both")
        if not run_ids and criteria.leaves_all_open and not self.everything:
            raise click.UsageError("specify ids, filters such as --status dead, or --all")
        return by_filter

    def carry_out(self, action: Action, criteria: Filter, as_json: bool) -> None:
        """Change all matching runs, or the newest up to the limit; commit after each page."""
        matched, refused, ids = 0, 0, list[int]()
        cursor: str | None = None
        with command_transaction() as connection:
            while True:
                left = CHANGED_MOST if self.limit is None else min(CHANGED_MOST, self.limit - matched)
                done = queue.bulk(
                    connection,
                    action,
                    criteria,
                    operator(),
                    everything=self.everything,
                    limit=left,
                    cursor=cursor,
                    dry_run=self.dry_run,
                )
                commit(connection)
                matched, refused, cursor = matched + done.matched, refused + done.refused, done.next
                ids += done.ids
                if cursor is None or matched == self.limit:
                    break
        changed = 0 if self.dry_run else len(ids)
        self._report(action, {"matched": matched, "changed": changed, "refused": refused, "ids": ids}, as_json)

    def _report(self, action: Action, done: dict[str, Any], as_json: bool) -> None:
        if as_json:
            show_json({**done, "dry_run": self.dry_run})
        elif self.dry_run:
            click.echo(f"{done['matched']} match; dry run: nothing was changed")
        else:
            click.echo(f"{done['matched']} matched, {done['changed']} changed")
        if done["refused"]:
            raise RowcallError(
                f"{done['refused']} were not changed, because {REFUSED[action]}:"
                f" `rowcall runs {action.name.lower()} ID` gives the reason for one run"
            )


def many_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add these options, and pass them to the command as `many`."""

    @functools.wraps(command)
    def with_many(everything: bool, dry_run: bool, limit: int | None, **options: Any) -> None:
        command(many=Many(everything, dry_run, limit), **options)

    for option in (
        click.option(
            "--limit",
            type=click.IntRange(min=1),
            help="Change at most this many runs, the newest first.  [default: all]",
        ),
        click.option("--dry-run", is_flag=True, help="Only count the matching runs."),
        click.option("--all", "everything", is_flag=True, help="Change every run; needed if no filter is given."),
    ):
        with_many = option(with_many)
    return with_many
