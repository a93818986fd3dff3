"""`rowcall migrate`."""

from __future__ import annotations

import click

from rowcall import definitions
from rowcall.access.audit import Operator
from rowcall.base import settings
from rowcall.base.database import transaction
from rowcall.job_types import catalogue
from rowcall.local_postgres import database_url
from rowcall.schema import REVISION
from rowcall_migrations.migrate import Migrated, migrate


@click.command("migrate")
@click.option("--to", "target", default="head", show_default=True, help="Revision to go to, such as 0002, or base.")
def migrate_command(target: str) -> None:
    """Bring the database to this version's schema.

    Safe to run from every server at each deploy: one does the work, the others wait and find it done.  All steps are
    one transaction.  Then the definitions that the code declares are applied, housekeeping's own among them.
    """
    chosen = settings.read()
    with database_url(chosen) as url:
        done = migrate(url, chosen.lock_timeout, target)
        lines = told(done)
        if done.after == REVISION:
            with transaction(url) as connection:
                lines += definitions.lines(definitions.apply_code(connection, catalogue(), Operator("rowcall migrate")))
    for line in lines:
        click.echo(line)


def told(done: Migrated) -> list[str]:
    """What was done, in words."""
    if done.before == done.after:
        return [f"the schema is {done.after or 'empty'} already: nothing to do"]
    return [
        f"the schema was {done.before or 'empty'}, and is now {done.after or 'empty'}:",
        *map("  {}".format, done.steps),
    ]
