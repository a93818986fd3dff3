"""Who holds the places of a queue with a limit."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column, empty: what runs already does not count against a limit that is set later."""
    op.execute("ALTER TABLE queues ADD COLUMN holders bigint[] DEFAULT '{}' NOT NULL, SET (fillfactor = 50)")


def downgrade() -> None:
    """Drop it again."""
    op.execute("ALTER TABLE queues DROP COLUMN holders, RESET (fillfactor)")
