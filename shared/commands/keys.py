"""`rowcall keys`: who may call the API."""

from __future__ import annotations

import click

from shared import api_keys
from shared.commands.output import json_option, show_json, show_table
from shared.commands.session import command_transaction


@click.group("keys")
def keys_command() -> None:
    """Make, list and revoke API keys."""


@keys_command.command("create")
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, required=True, type=click.Choice(api_keys.SCOPES))
@json_option
def create_command(name: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Make a key for NAME.  It is shown once and stored only as a hash."""
    with command_transaction() as connection:
        key = api_keys.create_key(connection, name, scopes)
    if as_json:
        show_json({"key": key})
    else:
        click.echo(key)


@keys_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """All keys, without their secrets."""
    with command_transaction() as connection:
        rows = api_keys.list_keys(connection)
    if as_json:
        show_json(rows)
    else:
        columns = ("id", "name", "prefix", "scopes", "created_at", "expires_at", "revoked_at")
        show_table(rows, columns, empty="there are no keys; `rowcall keys create NAME --scope read` makes one")


@keys_command.command("revoke")
@click.argument("key_id", type=int)
def revoke_command(key_id: int) -> None:
    """End the key with this id at once."""
    with command_transaction() as connection:
        api_keys.revoke_key(connection, key_id)
    click.echo(f"key {key_id} is revoked")
