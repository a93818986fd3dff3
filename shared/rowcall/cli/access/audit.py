"""`rowcall audit`."""

from __future__ import annotations

from typing import Any

import click

from rowcall.access.audit import SUBJECTS
from rowcall.base.database import Row
from rowcall.cli.parameters import Moment
from rowcall.cli.session import command_transaction
from rowcall.cli.terminal.output import show_json, shown
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.queue.views.audit import AuditFilter, list_audit

LISTED = ("at", "who", "action", "subject", "subject_id", "changes")
MORE = ("id", "request_id")


@click.command("audit")
@click.option("--who", help="Only changes by this caller: api:NAME or cli:USER.")
@click.option("--action", help="Only this action, such as retry or pause.")
@click.option("--subject", type=click.Choice(SUBJECTS), help="Only changes to subjects of this type.")
@click.option(
    "--subject-id",
    type=click.IntRange(1),
    help="Only changes to the subject with this id; needs --subject.  `rowcall definitions show` shows the id of a"
    " definition.",
)
@click.option("--after", type=Moment(past=True), help="Only changes at this time or later, such as 2h (two hours ago).")
@click.option("--before", type=Moment(past=True), help="Only changes before this time.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Show at most this many.")
@table_options
def audit_command(limit: int, table: Table, **criteria: Any) -> None:
    """List the newest matching changes by operators."""
    asked = AuditFilter(**criteria)
    with command_transaction() as connection:
        page = list_audit(connection, asked, limit)
        rows, now = page.rows, clock(connection)
        # A page may be short, because it limits how much it scans; the user wants as many rows as requested.
        while page.next and len(rows) < limit:
            page = list_audit(connection, asked, limit - len(rows), page.next)
            rows += page.rows
    if table.as_json:
        show_json(rows)
        return
    listed = [{**row, "subject_id": row["subject_name"] or row["subject_id"], "changes": _changes(row)} for row in rows]
    given = [f"--{name.replace('_', '-')} {shown(value)}" for name, value in criteria.items() if value is not None]
    empty = f"no changes match {' '.join(given)}" if given else "no operator has changed anything"
    table.show(listed, LISTED, now, empty, MORE)


def _changes(row: Row) -> list[str]:
    """Name what changed, such as "max_running - > 3"."""
    before, after = row["before"] or {}, row["after"] or {}
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [f"{name} {shown(before.get(name))} > {shown(after.get(name))}" for name in names]
