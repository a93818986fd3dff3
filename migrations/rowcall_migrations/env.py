"""What alembic runs: the versions, on the connection and in the transaction that rowcall_migrations.migrate opened."""

from alembic import context

from rowcall.schema.revision import VERSION_TABLE
from rowcall.schema.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    version_table_schema="rowcall",
)
# The caller's transaction is already open, so this begins none and commits none.
context.run_migrations()
