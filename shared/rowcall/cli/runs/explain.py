"""`rowcall runs explain`."""

from __future__ import annotations

import dataclasses

import click

from rowcall import effects
from rowcall.base import settings
from rowcall.cli.session import command_transaction
from rowcall.cli.terminal.output import json_option, show_json, wrapped
from rowcall.job_types import catalogue
from rowcall.status import Status

# What comes before a message that begins with the status.
VERBS = {Status.RUNNING: "is ", Status.CANCELLED: "was "}


@click.command("explain")
@click.argument("run_id", type=int)
@json_option
def explain_command(run_id: int, as_json: bool) -> None:
    """Explain why run RUN_ID has not run, and suggest commands."""
    heartbeat = settings.read().heartbeat
    with command_transaction() as connection:
        explained = effects.explain_with_effects(connection, run_id, catalogue().limits, heartbeat, catalogue())
    if as_json:
        show_json(dataclasses.asdict(explained))
        return
    begins = explained.message.startswith(explained.status)
    verb = VERBS.get(explained.status, "") if begins else f"is {explained.status}: "
    click.echo(wrapped(f"run {run_id} {verb}{explained.message}"))
    for condition in explained.conditions:
        mark = click.style("ok", fg="green") if condition.holds else click.style("no", fg="red", bold=True)
        click.echo(f"  {mark}  {wrapped(condition.message, indent=6)}")
    for command in explained.commands:
        click.echo(f"try: {command}")
