"""`rowcall prune`: prune old runs and their expired keys now."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import click

from rowcall.access.audit import record
from rowcall.base import settings
from rowcall.base.database import PgConnection, committed, connect_internal
from rowcall.base.files import Files
from rowcall.cli.session import command_transaction, needs_rights_of, operator
from rowcall.cli.terminal.confirm import confirm, yes_option
from rowcall.cli.terminal.output import json_option, show_json
from rowcall.local_postgres.url import database_url
from rowcall.queue.retention.prune import policy_of
from rowcall.queue.retention.walk import NOTHING_YET, PruneOptions, expire_keys, prune_runs
from rowcall.schema import check_revision

# The roles whose rights the command needs.
ROLES = "the worker's role that `rowcall migrate --grants` creates, or of the owner of the tables"

Policies = Mapping[str, Mapping[str, Any]]


@click.command("prune")
@click.option("--archive/--no-archive", default=None, help="Archive runs first.  [default: as in the policy]")
@click.option("--dry-run", is_flag=True, help="Only count; change nothing.")
@yes_option
@json_option
def prune_command(archive: bool | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Prune old runs and their expired keys now, as the definitions prune_runs and expire_keys do each night.

    The policies are the payloads of these definitions.  Ctrl-C stops after the current batch.
    """
    current = settings.read()
    if not dry_run:
        _confirm(yes)
    counts = {**NOTHING_YET, "expired": 0}
    stopped = False
    with database_url(current) as url, needs_rights_of(ROLES), closing(connect_internal(url)) as connection:
        by_hand = ByHand(connection)
        policies = by_hand.policies(audited=not dry_run)
        policy = policies["prune_runs"]["archive"]
        where = policy if archive is None else archive and (policy or "files")
        options = PruneOptions(by_hand, Files(current.archive_folder) if where else None, where == "table", dry_run)
        try:
            for progress in prune_runs(policies["prune_runs"], options):
                counts |= progress.counts
            for progress in expire_keys(policies["expire_keys"], options):
                counts["expired"] = progress.counts["deleted"]
        except KeyboardInterrupt:
            stopped = True
    if as_json:
        show_json({**counts, "dry_run": dry_run, "stopped": stopped})
    else:
        click.echo(_summary(counts, dry_run))
    if stopped:
        click.echo("stopped before the end; the next prune continues", err=True)
        sys.exit(1)


def _confirm(yes: bool) -> None:
    """Ask for confirmation, unless the command would fail anyway: the schema does not fit, or rights are missing."""
    if not yes:
        with needs_rights_of(ROLES), command_transaction():
            pass
    confirm("this deletes old runs and their expired keys, as the policies say (--dry-run counts them)", yes)


@dataclass(frozen=True)
class ByHand:
    """Performs the steps of pruning on one connection, as a run does under its lease."""

    connection: PgConnection

    @contextmanager
    def step(self) -> Iterator[PgConnection]:
        """Run the block in one transaction."""
        with committed(self.connection):
            yield self.connection

    def save(self, connection: PgConnection, what: Any) -> None:
        """Do nothing, because there is no next attempt."""

    def policies(self, audited: bool) -> Policies:
        """Return the policies, and audit the command."""
        with self.step() as connection:
            check_revision(connection)
            policies = {name: policy_of(connection, name) for name in ("prune_runs", "expire_keys")}
            if audited:
                record(connection, operator().who, "prune", "run", None, None, policies)
        return policies


def _summary(counts: Mapping[str, int], dry_run: bool) -> str:
    """Format the counts on one line."""
    dropped = f" months dropped from the archive {counts['months_dropped']:,};" if counts["months_dropped"] else ""
    return (
        f"{'nothing was changed; without --dry-run: ' if dry_run else ''}runs deleted {counts['deleted']:,},"
        f" reduced to their keys {counts['made_bare']:,}, archived {counts['archived']:,};"
        f"{dropped} occurrences deleted {counts['occurrences']:,}; keys expired {counts['expired']:,}"
    )
