"""`rowcall demo`: an app adds its own click commands with entry points of `rowcall.commands` in its package."""

from __future__ import annotations

import base64
import json
import os
from datetime import datetime
from pathlib import Path

import click

from rowcall.cli.session import command_transaction
from rowcall_example.demo import outside, seed
from rowcall_example.errors import DemoRefused
from rowcall_worker.gateways import endpoint_secret


@click.group("demo")
def demo_command() -> None:
    """Add the rows of a small SaaS, to try the example's jobs on."""


@demo_command.command("seed")
@click.option("--users", type=click.IntRange(1, 1000), default=20, show_default=True, help="The number of demo users.")
@click.option(
    "--today", type=click.DateTime(["%Y-%m-%d"]), help="The rows are made as of this day.  [default: today, UTC]"
)
@click.option("--anew", is_flag=True, help="Delete the demo's rows first, so that all are made as of today.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def seed_command(users: int, today: datetime | None, anew: bool, as_json: bool) -> None:
    """Add users with orders, invoices and sessions, unless they already exist.

    Their addresses end in @example.com, and their tables are in the schema `example`.  The same day always gives the
    same rows.
    """
    app = os.environ.get("ROWCALL_APP", "").strip()
    if app not in {"", "rowcall_example"}:
        raise click.ClickException(
            f"ROWCALL_APP is {app!r}, so this database is probably that app's: set ROWCALL_APP=rowcall_example to add"
            " the example's tables and rows to it"
        )
    try:
        with command_transaction() as connection:
            seeded = seed.seed(connection, users, today.date() if today else None, anew)
    except DemoRefused as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(json.dumps({**vars(seeded), "today": str(seeded.today)}))
    elif seeded.users:
        added = (f"{number:,} {name.replace('_', ' ')}" for name, number in vars(seeded).items() if name != "today")
        click.echo(f"added {', '.join(added)}, as of {seeded.today}")
    else:
        click.echo(f"the demo's {users} users already exist: nothing added")


@demo_command.command("outside", hidden=True)
@click.option("--port", type=click.IntRange(1, 65535), required=True)
@click.option("--folder", type=click.Path(path_type=Path), required=True)
def outside_command(port: int, folder: Path) -> None:
    """Run stand-ins for a payment provider and a webhook receiver; `rowcall up` starts this command."""
    key, words = os.environ.get("ROWCALL_PAYMENT_KEY"), os.environ.get("ROWCALL_WEBHOOK_SECRET")
    if not key or not words:
        raise click.ClickException("set ROWCALL_PAYMENT_KEY and ROWCALL_WEBHOOK_SECRET, as `rowcall up` does")
    signing = [base64.b64decode(word.removeprefix("whsec_")) for word in words.split()]
    secrets = [endpoint_secret(secret, outside.hooks_url(port)) for secret in signing]
    outside.serve(folder, key, secrets, port)
