"""The script that alembic runs: applies the versions in the open transaction, or prints them for psql."""

from __future__ import annotations

from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext

from rowcall.base.watched import INTERNAL_NAMES
from rowcall.schema.revision import VERSION_TABLE
from rowcall_migrations.versions_folder import fits_at


def note_what_fits(*, ctx: MigrationContext, heads: set[str], **_: Any) -> None:
    """Record the oldest revision whose code still works with the new version."""
    for revision in heads:
        ctx.impl.execute(f"UPDATE rowcall.{VERSION_TABLE} SET fits = '{fits_at(context.script, revision)}'")


options: dict[str, Any] = {
    "version_table": VERSION_TABLE,
    "version_table_schema": "rowcall",
    "on_version_apply": note_what_fits,
}

if context.is_offline_mode():
    context.configure(dialect_name="postgresql", literal_binds=True, **options)
    with context.begin_transaction():
        context.execute(INTERNAL_NAMES.rstrip(";"))
        if context.get_starting_revision_argument() in (None, "base"):
            context.execute("CREATE SCHEMA IF NOT EXISTS rowcall")
        context.run_migrations()
else:
    context.configure(connection=context.config.attributes["connection"], **options)
    # The caller's transaction is already open, so this neither begins nor commits one.
    context.run_migrations()
