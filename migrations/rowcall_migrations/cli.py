"""`rowcall migrate`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from rowcall import definitions
from rowcall.access.audit import Operator
from rowcall.base import settings
from rowcall.base.database import fetch_value, internal_transaction
from rowcall.cli.terminal.confirm import confirm, yes_option
from rowcall.job_types import catalogue
from rowcall.job_types.housekeeping import CARRY_OUT_OPERATION
from rowcall.local_postgres.url import database_url, named
from rowcall.queue.workers import SILENCE_SECONDS
from rowcall.schema import REVISION, schema_of
from rowcall_migrations.grants import ROLES, as_grants
from rowcall_migrations.migrate import Migrated, migrate
from rowcall_migrations.script import as_sql
from rowcall_migrations.versions_folder import revisions, scripts

# In each schema, the table has these columns.
ALIVE = """
SELECT count(*) FROM rowcall.workers
WHERE stopped_at IS NULL AND heartbeat_at > now() - %(silence)s * interval '1 second'
"""

# Job types of Rowcall's own that code of an older schema does not know; the index job_runs_live.
NEWER_TYPES = {"0002": [CARRY_OUT_OPERATION.name]}
UNKNOWN_LATER = "SELECT count(*) FROM rowcall.job_runs WHERE finished_at IS NULL AND job_type = ANY(%(types)s::text[])"

# The index job_runs_live.
RUNNING = "SELECT count(*) FROM rowcall.job_runs WHERE finished_at IS NULL AND status = 'running'"


@click.command("migrate")
@click.option("--to", "target", default="head", show_default=True, help="Revision to go to, such as 0002, or base.")
@click.option("--sql", is_flag=True, help="Change nothing; print the steps as a script for psql.")
@click.option(
    "--from", "start", metavar="REVISION", help="With --sql: the revision that the database has.  [default: none]"
)
@click.option("--grants", is_flag=True, help="Change nothing; print the grants for least-privilege roles.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="DUTY=NAME",
    help=f"With --grants: the name of the role for DUTY ({', '.join(ROLES)}).  [default: rowcall_DUTY]",
)
@yes_option
def migrate_command(target: str, sql: bool, start: str | None, grants: bool, roles: tuple[str, ...], yes: bool) -> None:
    """Migrate the database to this version's schema.

    Safe to run from every server at each deploy: one migrates, and the others wait for it.  All steps run in one
    transaction; indexes of large tables are built afterwards, without blocking work.  Then the definitions that the
    code declares are applied.
    """
    _check_options(target, sql, start, grants, roles)
    if sql:
        click.echo(as_sql(start), nl=False)
    elif grants:
        click.echo(as_grants(roles), nl=False)
    else:
        if target == "base":
            _confirm("this drops all tables of Rowcall, with every run, definition, key and effect", yes)
        elif target != "head" and _goes_back(target):
            _warn_of_unknown_runs(target)
            _confirm(
                f"this deletes the data that only schemas newer than {target} store, such as the logs of runs, the"
                " archive table with all archived runs, and the idempotency keys of requests that got an existing run",
                yes,
            )
        for line in _migrate(target):
            click.echo(line)


def _confirm(consequence: str, yes: bool) -> None:
    """Ask for confirmation; name the database, and the numbers of workers, which would stop, and of running runs."""
    with database_url(settings.read()) as url, internal_transaction(url) as connection:
        if not schema_of(connection):
            return  # there is nothing to lose
        alive = fetch_value(connection, ALIVE, {"silence": SILENCE_SECONDS})
        running = fetch_value(connection, RUNNING)
    workers = f", while {alive} {'worker works' if alive == 1 else 'workers work'} on it" if alive else ""
    runs = f"; {running} {'run is' if running == 1 else 'runs are'} running" if running else ""
    confirm(f"{consequence}, in {named(url)}{workers}{runs}", yes)


def _warn_of_unknown_runs(target: str) -> None:
    """Warn of unfinished runs whose job type the code of the older schema does not know, so it leaves them alone."""
    types = [name for revision, names in NEWER_TYPES.items() if revision > target for name in names]
    with database_url(settings.read()) as url, internal_transaction(url) as connection:
        left = fetch_value(connection, UNKNOWN_LATER, {"types": types})
    if left:
        runs, them = ("1 unfinished run", "it") if left == 1 else (f"{left} unfinished runs", "them")
        unknown = f"the job type of {runs} ({', '.join(types)})"
        cancel = " and ".join(f"`rowcall runs cancel --type {name}`" for name in types)
        click.echo(f"rowcall: the older version does not know {unknown}: cancel {them} with {cancel}", err=True)


def _goes_back(target: str) -> bool:
    if target not in revisions(scripts()):
        return False  # which is refused
    with database_url(settings.read()) as url, internal_transaction(url) as connection:
        found = schema_of(connection)
    return found is not None and found.revision > target


def _check_options(target: str, sql: bool, start: str | None, grants: bool, roles: tuple[str, ...]) -> None:
    if sql and grants:
        raise click.UsageError("--sql and --grants are mutually exclusive: use one")
    if (sql or grants) and target != "head":
        raise click.UsageError("--to migrates, and --sql and --grants only print: use one of them")
    if start is not None and not sql:
        raise click.UsageError("--from requires --sql")
    if roles and not grants:
        raise click.UsageError("--role requires --grants")


def _migrate(target: str) -> Iterator[str]:
    """Migrate, and apply the code's definitions; each line says what has been done."""
    chosen = settings.read()
    # An app that cannot be imported must stop the command before it changes anything; a downgrade needs no app.
    declared = catalogue() if target in ("head", REVISION) else None
    with database_url(chosen) as url:
        done = migrate(url, chosen.lock_timeout, target)
        yield from told(done)
        if declared is not None and done.after == REVISION:
            with internal_transaction(url) as connection:
                applied = definitions.apply_code(connection, declared, Operator("rowcall migrate"))
            yield from definitions.lines(applied)


def told(done: Migrated) -> list[str]:
    """Describe a migration in lines of text."""
    now = done.after or "empty"
    if not done.steps and done.after is not None and done.after > REVISION:
        return [f"the schema is {now}, newer than this code ({REVISION}), which still fits it: nothing to do"]
    if not done.steps and done.after is None:
        return ["the database has no Rowcall schema: there is nothing to remove"]
    if not done.steps:
        return [f"the schema is already {now}: nothing to do"]
    steps = map("  {}".format, done.steps)
    if done.before == done.after:
        return [f"the schema is already {now}; the steps that remained are done:", *steps]
    undone = "; undone" if done.before is not None and (done.after or "") < done.before else ""
    return [f"the schema was {done.before or 'empty'}, and is now {now}{undone}:", *steps]
