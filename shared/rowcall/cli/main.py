"""The front door: `rowcall`.  Sub-commands are found through entry points, and loaded when they are called."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points, version
from typing import NoReturn

import click
import psycopg2.errors

from rowcall.base.database import drivers_error
from rowcall.base.errors import DatabaseUnreachable, RowcallError
from rowcall.base.redaction import redacted

COMMANDS = "rowcall.commands"


class FrontDoor(click.Group):
    """A group whose commands are the entry points of COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, for --help."""
        return sorted(found())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded only now: `rowcall worker` need not import Flask."""
        command: click.Command | None = found()[cmd_name].load() if cmd_name in found() else None
        return command


def found() -> dict[str, EntryPoint]:
    """Name -> entry point."""
    return {point.name: point for point in entry_points(group=COMMANDS)}


@click.group(cls=FrontDoor, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("rowcall"), prog_name="rowcall")
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
        if not isinstance(cause, psycopg2.OperationalError):
            raise
        _end(f"the database was lost: {reason}; `rowcall doctor` looks for the cause", DatabaseUnreachable.exit_code)


def _end(sentence: str, code: int) -> NoReturn:
    click.echo(f"rowcall: {redacted(sentence)}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
