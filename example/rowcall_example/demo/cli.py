"""`rowcall demo`."""

from __future__ import annotations

from datetime import datetime

import click

from rowcall.base import settings
from rowcall.base.errors import SettingsError
from rowcall.cli.output import json_option, show_json
from rowcall.cli.session import command_transaction
from rowcall_example.demo import outside, seed


@click.group("demo")
def demo_command() -> None:
    """A small SaaS to try the built-in jobs on."""


@demo_command.command("seed")
@click.option("--users", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many there should be.")
@click.option("--today", type=click.DateTime(["%Y-%m-%d"]), help="The day that all is before.  [default: today, UTC]")
@json_option
def seed_command(users: int, today: datetime | None, as_json: bool) -> None:
    """Add users with orders, invoices and sessions, as far as they are not there yet.

    Their addresses end in @example.com.  The same day always gives the same rows.
    """
    with command_transaction() as connection:
        seeded = seed.seed(connection, users, today.date() if today else None)
    if as_json:
        show_json(vars(seeded))
    elif seeded.users:
        told = (f"{number:,} {name.replace('_', ' ')}" for name, number in vars(seeded).items() if name != "today")
        click.echo(f"added {', '.join(told)}, as of {seeded.today}")
    else:
        click.echo(f"the demo's {users} users are there already: nothing added")


@demo_command.command("outside", hidden=True)
@click.option("--port", type=click.IntRange(1, 65535), required=True)
def outside_command(port: int) -> None:
    """Stand in for a payment provider and a receiver of webhooks; `rowcall up` starts it."""
    chosen = settings.read()
    if chosen.payment_key is None or not chosen.webhook_secrets:
        raise SettingsError("the demo's outside needs ROWCALL_PAYMENT_KEY and ROWCALL_WEBHOOK_SECRET: use `rowcall up`")
    outside.serve(chosen.home / "demo", chosen.payment_key, chosen.webhook_secrets, port)
