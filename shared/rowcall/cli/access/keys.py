"""`rowcall keys`: manage API keys."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import click

from rowcall.access import api_keys
from rowcall.access.caller import Limits
from rowcall.base.errors import RowcallError
from rowcall.cli.parameters import Duration, KeyId, Moment
from rowcall.cli.session import command_transaction, operator
from rowcall.cli.terminal.group import Group
from rowcall.cli.terminal.output import discard_output, json_option, show_json, shown
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.job_types import catalogue
from rowcall.queue.views.keys import check_known

LISTED = ("id", "name", "scopes", "state", "job_types", "queues", "last_used_at", "expires_at")
MORE = ("prefix", "created_at", "revoked_at")


@click.group("keys", cls=Group)
def keys_command() -> None:
    """Create, list, rotate and revoke API keys."""


@keys_command.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(api_keys.SCOPES),
    help="What the key may do.  May be repeated.",
)
@click.option("--expires", "expires_at", type=Moment(), help="When the key expires, such as 90d.  [default: never]")
@click.option(
    "--types", help="Job types whose runs the key may enqueue and change, separated by commas.  [default: all]"
)
@click.option("--queues", help="Queues that the key may enqueue to and change, separated by commas.  [default: all]")
@json_option
def create_command(
    name: str,
    scopes: tuple[str, ...],
    expires_at: datetime | None,
    types: str | None,
    queues: str | None,
    as_json: bool,
) -> None:
    """Create a key for NAME.  It is shown once, and only its hash is stored."""
    limits = Limits(_names(types), _names(queues))
    with command_transaction() as connection:
        check_known(connection, limits, catalogue())
        key = api_keys.create_key(connection, name, scopes, operator(), expires_at, limits=limits)
        key_id = api_keys.id_of(connection, key)
        _show_secret(as_json, {"id": key_id, "key": key})
    if as_json:
        return
    until = f"; it expires at {shown(expires_at)}" if expires_at else ""
    click.echo(f"this is key {key_id}, for {name}, and is not shown again{until}", err=True)


@keys_command.command("list")
@table_options
def list_command(table: Table) -> None:
    """List all keys, without their secrets."""
    with command_transaction() as connection:
        rows, now = api_keys.list_keys(connection), clock(connection)
    table.show(rows, LISTED, now, "there are no keys; `rowcall keys create NAME --scope read` creates one", MORE)


@keys_command.command("rotate")
@click.argument("key_id", type=KeyId())
@click.option(
    "--grace",
    type=Duration("24h or '2 days'"),
    default="24h",
    show_default=True,
    help="Grace period: how long the old key keeps working.",
)
@json_option
def rotate_command(key_id: int, grace: timedelta, as_json: bool) -> None:
    """Replace a key with a new one that has the same name, scopes, limits and lifetime.

    The new key is shown once.  The old key stops working after the grace period.
    """
    with command_transaction() as connection:
        rotated = api_keys.rotate_key(connection, key_id, grace, operator())
        new_id = api_keys.id_of(connection, rotated.key)
        told = {"id": new_id, "key": rotated.key, "expires_at": rotated.expires_at, "old_ends_at": rotated.old_ends_at}
        _show_secret(as_json, told)
    if as_json:
        return
    until = f"; it expires at {shown(rotated.expires_at)}" if rotated.expires_at else ""
    old = f"key {key_id} expires at {shown(rotated.old_ends_at)}"
    click.echo(f"this is key {new_id}, and is not shown again{until}; {old}", err=True)


@keys_command.command("revoke")
@click.argument("key_id", type=KeyId())
def revoke_command(key_id: int) -> None:
    """Revoke a key at once."""
    with command_transaction() as connection:
        api_keys.revoke_key(connection, key_id, operator())
    click.echo(f"key {key_id} is revoked")


def _show_secret(as_json: bool, created: Mapping[str, Any]) -> None:
    """Print a key before its transaction commits: a key that cannot be printed is not created."""
    if sys.__stdout__ is None:  # the shell's >&-
        raise RowcallError("the key cannot be shown, because standard output is closed; nothing was changed")
    try:
        if as_json:
            show_json(created)
        else:
            click.echo(created["key"])
        sys.stdout.flush()
    except OSError as error:
        discard_output()
        raise RowcallError(f"the key cannot be shown: {error.strerror}; nothing was changed") from None


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]
