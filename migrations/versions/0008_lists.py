"""What lists of runs are read by: a definition's, and those that have failed."""

from alembic import op

revision = "0008"
down_revision = "0007"

UP = """
CREATE INDEX job_runs_failed ON job_runs (created_at, id) WHERE failed_at IS NOT NULL;
CREATE INDEX job_runs_definition ON job_runs (definition_id, created_at, id) WHERE definition_id IS NOT NULL;
"""


def upgrade() -> None:
    """Add the indexes."""
    op.execute(UP)


def downgrade() -> None:
    """Drop them again."""
    op.execute("DROP INDEX job_runs_failed, job_runs_definition")
