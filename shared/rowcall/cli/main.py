"""The `rowcall` command.  It imports a subcommand only when that is called."""

from __future__ import annotations

import functools
import os
import signal
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NoReturn

import click
import psycopg2.errors

from rowcall import __version__
from rowcall.base.database import drivers_error
from rowcall.base.errors import DatabaseUnreachable, RowcallError
from rowcall.base.errors.sentences import one_line
from rowcall.base.files import FULL
from rowcall.base.outages import LOCKED, READ_ONLY_REMEDY, SHORTAGE, is_outage, is_passing
from rowcall.base.redaction import redacted
from rowcall.cli import extras
from rowcall.cli.misspelt import misspelt_settings
from rowcall.cli.terminal.group import Group
from rowcall.cli.terminal.output import discard_output, wrapped

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Rowcall's own commands.  Not entry points: finding those reads the metadata of all installed packages, which takes
# longer than many commands.
OWN = {
    "up": "rowcall.cli.up.command:up_command",
    "new": "rowcall.cli.new.command:new_command",
    "migrate": "rowcall_migrations.cli:migrate_command",
    "types": "rowcall.cli.types:types_command",
    "enqueue": "rowcall.cli.runs.command:enqueue_command",
    "worker": "rowcall_worker.cli:worker_command",
    "api": "rowcall_api.cli:api_command",
    "runs": "rowcall.cli.runs.command:runs_command",
    "failures": "rowcall.cli.failures:failures_command",
    "operations": "rowcall.cli.operations:operations_command",
    "definitions": "rowcall.cli.definitions.command:definitions_command",
    "effects": "rowcall.cli.effects:effects_command",
    "queues": "rowcall.cli.queues:queues_command",
    "workers": "rowcall.cli.workers:workers_command",
    "alerts": "rowcall.cli.alerts:alerts_command",
    "keys": "rowcall.cli.access.keys:keys_command",
    "audit": "rowcall.cli.access.audit:audit_command",
    "webhook-secret": "rowcall.cli.webhook_secret:webhook_secret_command",
    "prune": "rowcall.cli.retention.prune:prune_command",
    "archive": "rowcall.cli.retention.archive:archive_command",
    "erase": "rowcall.cli.retention.erase:erase_command",
    "doctor": "rowcall.cli.doctor.command:doctor_command",
    "completion": "rowcall.cli.completion:completion_command",
}
# What a shell reports for a program that SIGINT has ended.
INTERRUPTED = 128 + signal.SIGINT
# What a shell reports for a program that SIGPIPE has ended, as most tools end when `head` stops reading.  Not 0: the
# command may not have done everything, and the exit code of `runs show --wait` says whether a run succeeded.
UNREAD = 128 + signal.SIGPIPE
# What click writes before the sentence of a usage error.
USAGE_LABEL = "Error: "
# An app adds commands as entry points of this group.
APPS = "rowcall.commands"


class FrontDoor(Group):
    """The group of Rowcall's own commands and those that apps add."""

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Read the arguments, and print the help if they ask for it."""
        try:
            return super().make_context(*args, **options)
        except BrokenPipeError:
            _end_unread()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names: Rowcall's own in the order of use, then those of apps."""
        return [*OWN, *sorted(_added().keys() - OWN.keys())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, so that `rowcall worker` does not import Flask."""
        try:
            return _load(cmd_name)
        except ModuleNotFoundError as error:
            if not extras.is_missing(error):
                raise
            return _not_installed(cmd_name, error)

    def outline(self, ctx: click.Context, name: str) -> str | None:
        """Return the first sentence of a command's help, without importing a command that imports much."""
        return extras.outlined(name) or super().outline(ctx, name)

    def invoke(self, ctx: click.Context) -> Any:
        """Import and run the command; Ctrl-C ends it as it ends a program without a handler, but lets it clean up.

        A ClickException of an app's command is shown as an error of Rowcall's own commands is.  The sentence of a usage
        error is wrapped as all others are.
        """
        was = signal.getsignal(signal.SIGINT)
        if was is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:  # here, because click would exit with 1
            _end_unread()
        except click.UsageError as error:
            raise _wrapped(error) from None
        except click.ClickException as error:
            if type(error) is not click.ClickException:
                raise
            raise RowcallError(error.message) from None
        finally:
            if was is signal.SIG_DFL:
                signal.signal(signal.SIGINT, was)


def _not_installed(name: str, error: ModuleNotFoundError) -> click.Command:
    """Return a placeholder for a command whose extra is missing: it appears in --help, and fails when it is run."""

    def fail(**_: object) -> None:
        raise error

    return click.Command(
        name,
        callback=fail,
        short_help=extras.described(name),
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


def _load(name: str) -> click.Command | None:
    """Return the command with this name; an app cannot replace one of Rowcall's own."""
    command: click.Command | None = None
    if name in OWN:
        command = resolve_name(OWN[name])
    elif name in _added():
        command = _added()[name].load()
    return command


@functools.cache
def _added() -> dict[str, EntryPoint]:
    """Return the entry points of the commands that apps add, by name."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=APPS)}


@click.group(cls=FrontDoor, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="rowcall")
def rowcall() -> None:
    """Scheduled background jobs on nothing but PostgreSQL.

    Settings are environment variables; `rowcall doctor` shows them and finds problems.

    Exit codes: 0 done, 1 refused or not found, 2 usage error, 3 database not available.
    """
    for sentence in misspelt_settings():
        click.echo(f"rowcall: {sentence}", err=True)


def main() -> None:
    """Run a command; show Rowcall's own errors as a sentence and an exit code, not as a traceback."""
    if sys.stdout is None:  # the shell's >&-
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    try:
        _run()
    except BrokenPipeError:  # while an error's sentence was printed
        _end_unread()


def _wrapped(error: click.UsageError) -> click.UsageError:
    """Wrap the sentence of an error; the help of a group that was called without a command is wrapped already."""
    if "\n" in error.message:
        return error
    sentence = wrapped(f"{USAGE_LABEL}{error.format_message()}", errors=True).removeprefix(USAGE_LABEL)
    return click.UsageError(sentence, error.ctx)


def _run() -> None:
    try:
        rowcall(prog_name="rowcall")
    except RowcallError as error:
        _end(str(error), error.exit_code)
    except OSError as error:
        _end_of_system(error)
        raise
    except Exception as error:
        _end_of_database(drivers_error(error))
        raise


def _end_of_system(error: OSError) -> None:
    """Exit with a message if the output or a disk is full, or the current folder is gone."""
    if error.errno in FULL and error.filename is None:
        discard_output()
        _end(
            f"the output or a file cannot be written: {error.strerror}; changes that the command has already made"
            " remain",
            1,
        )
    try:
        Path.cwd()
    except FileNotFoundError:
        _end("the current folder has been deleted: change to one that exists", 1)


def _end_of_database(cause: Exception) -> None:
    """Exit with a message if this is an error of the database."""
    said = cause.diag.message_primary if isinstance(cause, psycopg2.Error) else None
    reason = one_line(said or str(cause))
    if isinstance(cause, psycopg2.errors.InsufficientPrivilege):
        _end(f"the database refuses this role: {reason}; `rowcall migrate --grants` prints the needed grants", 1)
    if isinstance(cause, psycopg2.errors.ReadOnlySqlTransaction):
        _end(f"the database is read-only: {reason}; {READ_ONLY_REMEDY}", DatabaseUnreachable.exit_code)
    if isinstance(cause, psycopg2.errors.LockNotAvailable):
        _end(LOCKED, DatabaseUnreachable.exit_code)
    if is_passing(cause):
        _end(f"the database cancelled a statement: {reason}; try again in a moment", DatabaseUnreachable.exit_code)
    if (getattr(cause, "pgcode", None) or "").startswith(SHORTAGE):
        _end(
            f"the database has run out of a resource: {reason}; free it on the database server, and try again",
            DatabaseUnreachable.exit_code,
        )
    if isinstance(cause, psycopg2.OperationalError) or is_outage(cause):
        _end(
            f"lost the connection to the database: {reason}; run `rowcall doctor` to find the cause",
            DatabaseUnreachable.exit_code,
        )


def _end_unread() -> NoReturn:
    """Exit silently, because nobody reads the output any more."""
    discard_output(errors=True)
    sys.exit(UNREAD)


def _end(sentence: str, code: int) -> NoReturn:
    click.echo(wrapped(f"rowcall: {redacted(sentence)}", errors=True), err=True)
    sys.exit(code)
