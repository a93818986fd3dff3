"""`rowcall alerts`."""

from __future__ import annotations

import click

from rowcall.alerts import begin_test, list_incidents, opened_title
from rowcall.base import settings
from rowcall.base.database import Row
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.group import Group
from rowcall.cli.terminal.output import show_json
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.job_types import catalogue
from rowcall.job_types.alerting import NO_RECEIVERS, receivers_by_label

LISTED = ("id", "alert", "opened_at", "ended_at", "what")

TO_FILES = "ROWCALL_SMTP_URL is not set here; workers without it write emails to .rowcall/mail"


@click.group("alerts", cls=Group)
def alerts_command() -> None:
    """List incidents, and send a test alert."""


@alerts_command.command("list")
@click.option("--open", "only_open", is_flag=True, help="Only incidents that have not ended.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Show at most this many.")
@table_options
def list_command(only_open: bool, limit: int, table: Table) -> None:
    """List incidents: the open ones first, then the newest."""
    with command_transaction() as connection:
        rows, now = list_incidents(connection, limit, only_open), clock(connection)
    if table.as_json:
        show_json(rows)
        return
    kept = "is open" if only_open else "has been recorded"
    empty = f"no incident {kept}; workers check alerts only if they have receivers (`rowcall doctor`)"
    table.show([{**row, "what": _what(row)} for row in rows], LISTED, now, empty)


def _what(row: Row) -> str:
    """Say what began; for a test, also whether a worker has told the receivers."""
    title = opened_title(row["alert"], row["subject"], row["details"])
    return title if row["told"] else f"{title}; no worker has found it yet"


@alerts_command.command("test")
def test_command() -> None:
    """Send a test alert to all receivers.

    A worker sends it within about a minute, with the worker's own settings.  About five minutes later, it sends another
    message: the test has ended.
    """
    with command_transaction() as connection:
        incident = begin_test(connection, operator().who)
    click.echo(f"incident {incident} is a test; if no message arrives within two minutes, run `rowcall doctor`")
    chosen = settings.read()
    if not receivers_by_label(chosen, catalogue()):
        click.echo(NO_RECEIVERS, err=True)
    elif chosen.smtp is None and chosen.alert_emails:
        click.echo(TO_FILES, err=True)
