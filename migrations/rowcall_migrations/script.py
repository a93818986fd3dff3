"""`rowcall migrate --sql`: the same steps as a script, to be run by a role that can create a schema."""

from __future__ import annotations

from io import StringIO

from alembic import command

from rowcall.base.errors import SchemaMismatch
from rowcall.schema import REVISION
from rowcall_migrations.grants import HOW_TO_RUN
from rowcall_migrations.versions_folder import alembic_config, indexes_at, oldest_first, scripts

HEAD = f"""\
-- Migrates Rowcall's schema from {{before}} to {{after}}.  Run it as the role that will own the tables:
{HOW_TO_RUN}\
-- `rowcall migrate --grants` prints a script with the rights that other roles need.
"""


def as_sql(start: str | None) -> str:
    """Return all steps after a revision (None: all steps) in one transaction, then the indexes built outside it."""
    folder = scripts()
    known = [script.revision for script in oldest_first(folder)]
    if start is not None and start not in known:
        raise SchemaMismatch(f"there is no revision {start!r}; `--from` takes one of {', '.join(known)}")
    written = StringIO()
    written.write(HEAD.format(after=REVISION, before=start or "nothing") + "\n")
    command.upgrade(alembic_config(output=written), f"{start or 'base'}:head", sql=True)
    before = indexes_at(folder, start) if start else {}
    for name, statement in indexes_at(folder, REVISION).items():
        if before.get(name) != statement:
            written.write(f"{statement or f'DROP INDEX CONCURRENTLY IF EXISTS rowcall.{name}'};\n\n")
    return written.getvalue()
