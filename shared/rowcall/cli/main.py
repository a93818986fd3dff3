"""The front door: `rowcall`.  A sub-command is loaded when it is called."""

from __future__ import annotations

import functools
import sys
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NoReturn

import click
import psycopg2.errors

from rowcall import __version__
from rowcall.base.database import drivers_error
from rowcall.base.errors import DatabaseUnreachable, RowcallError
from rowcall.base.outages import READ_ONLY_REMEDY, is_outage
from rowcall.base.redaction import redacted
from rowcall.cli import extras
from rowcall.cli.misspelt import misspelt_settings
from rowcall.cli.terminal.group import Group

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Rowcall's own commands.  To look for entry points reads the metadata of all that is installed, which takes longer than
# many a command.
OWN = {
    "up": "rowcall.cli.up.command:up_command",
    "new": "rowcall.cli.new.command:new_command",
    "migrate": "rowcall_migrations.cli:migrate_command",
    "types": "rowcall.cli.types:types_command",
    "enqueue": "rowcall.cli.runs.command:enqueue_command",
    "worker": "rowcall_worker.cli:worker_command",
    "api": "rowcall_api.cli:api_command",
    "runs": "rowcall.cli.runs.command:runs_command",
    "definitions": "rowcall.cli.definitions.command:definitions_command",
    "effects": "rowcall.cli.effects:effects_command",
    "queues": "rowcall.cli.queues:queues_command",
    "keys": "rowcall.cli.keys:keys_command",
    "webhook-secret": "rowcall.cli.webhook_secret:webhook_secret_command",
    "prune": "rowcall.cli.prune:prune_command",
    "doctor": "rowcall.cli.doctor.command:doctor_command",
}
# An app adds commands of its own as entry points of this group.
APPS = "rowcall.commands"


class FrontDoor(Group):
    """A group whose commands are Rowcall's own and those that apps add."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, for --help: Rowcall's own in the order of use, then those of apps."""
        return [*OWN, *sorted(_added().keys() - OWN.keys())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded only now: `rowcall worker` need not import Flask."""
        try:
            return _load(cmd_name)
        except ModuleNotFoundError as error:
            if not extras.is_missing(error):
                raise
            return _not_installed(cmd_name, error)


def _not_installed(name: str, error: ModuleNotFoundError) -> click.Command:
    """A command whose extra is missing: `rowcall --help` lists it, and running it ends with the error."""

    def fail(**_: object) -> None:
        raise error

    return click.Command(
        name,
        callback=fail,
        short_help=extras.needs([name]),
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


def _load(name: str) -> click.Command | None:
    """The command of this name; no app's takes the place of Rowcall's own."""
    command: click.Command | None = None
    if name in OWN:
        command = resolve_name(OWN[name])
    elif name in _added():
        command = _added()[name].load()
    return command


@functools.cache
def _added() -> dict[str, EntryPoint]:
    """Name -> entry point of the commands that apps add."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=APPS)}


@click.group(cls=FrontDoor, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="rowcall")
def rowcall() -> None:
    """Scheduled background jobs on nothing but PostgreSQL.

    Settings are environment variables; `rowcall doctor` lists them and says what is wrong.

    Exit codes: 0 done, 1 refused or not found, 2 wrong usage, 3 database unreachable.
    """
    for sentence in misspelt_settings():
        click.echo(f"rowcall: {sentence}", err=True)


def main() -> None:
    """Run a command; errors that Rowcall raises on purpose are a sentence and an exit code, not a traceback."""
    try:
        rowcall(prog_name="rowcall")
    except RowcallError as error:
        _end(str(error), error.exit_code)
    except Exception as error:
        cause = drivers_error(error)
        reason = " ".join(str(cause).split())
        if isinstance(cause, psycopg2.errors.InsufficientPrivilege):
            _end(f"the database refuses this role: {reason}; `rowcall migrate --grants` prints what roles need", 1)
        if isinstance(cause, psycopg2.errors.ReadOnlySqlTransaction):
            _end(f"the database is read-only: {reason}; {READ_ONLY_REMEDY}", DatabaseUnreachable.exit_code)
        if not isinstance(cause, psycopg2.OperationalError) and not is_outage(cause):
            raise
        _end(f"the database was lost: {reason}; `rowcall doctor` looks for the cause", DatabaseUnreachable.exit_code)


def _end(sentence: str, code: int) -> NoReturn:
    click.echo(f"rowcall: {redacted(sentence)}", err=True)
    sys.exit(code)
