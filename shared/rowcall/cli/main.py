"""The front door: `rowcall`.  Sub-commands are found through entry points, and loaded when they are called."""

from __future__ import annotations

import functools
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import NoReturn

import click
import psycopg2.errors

from rowcall.base.database import drivers_error
from rowcall.base.errors import DatabaseUnreachable, RowcallError
from rowcall.base.outages import READ_ONLY_REMEDY, is_outage
from rowcall.base.redaction import redacted
from rowcall.cli import extras

COMMANDS = "rowcall.commands"


class FrontDoor(click.Group):
    """A group whose commands are the entry points of COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, for --help."""
        return sorted(found())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded only now: `rowcall worker` need not import Flask."""
        if cmd_name not in found():
            return None
        try:
            command: click.Command = found()[cmd_name].load()
        except ModuleNotFoundError as error:
            if not extras.is_missing(error):
                raise
            return _not_installed(cmd_name, error)
        return command


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


@functools.cache
def found() -> dict[str, EntryPoint]:
    """Name -> entry point; looked for once, because each look reads the metadata of all that is installed."""
    return {point.name: point for point in entry_points(group=COMMANDS)}


@click.group(cls=FrontDoor, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rowcall", prog_name="rowcall")
def rowcall() -> None:
    """Scheduled background jobs on nothing but PostgreSQL.

    Settings are environment variables; `rowcall doctor` lists them and says what is wrong.
    Exit codes: 0 done, 1 refused or not found, 2 usage, 3 database not reachable.
    """


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
