"""What was refused and begun anew, and an index of what is not settled."""

from alembic import op

revision = "0006"
down_revision = "0005"

TABLES = ("sent_emails", "sent_reports", "payments", "delivered_webhooks", "generated_files")


def upgrade() -> None:
    """Add the columns and the indexes."""
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN generation integer DEFAULT 1 NOT NULL, ADD COLUMN refusal text")
        op.execute(f"CREATE INDEX {table}_open ON {table} (id) WHERE state <> 'applied'")


def downgrade() -> None:
    """Drop them again."""
    for table in TABLES:
        op.execute(f"DROP INDEX {table}_open")
        op.execute(f"ALTER TABLE {table} DROP COLUMN generation, DROP COLUMN refusal")
