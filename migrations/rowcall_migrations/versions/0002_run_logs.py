"""A table for the lines that handlers log, kept with their run."""

from alembic import op

revision = "0002"
down_revision = "0001"
fits = "0001"

RUN_LOGS = """
CREATE TABLE rowcall.run_logs (
    run_id bigint NOT NULL,
    line_no integer NOT NULL,
    lease_no integer NOT NULL,
    lease_line_no integer NOT NULL,
    logged_at timestamptz NOT NULL,
    level text NOT NULL,
    text text NOT NULL,
    CONSTRAINT run_logs_pkey PRIMARY KEY (run_id, line_no),
    CONSTRAINT run_logs_level_known CHECK (level IN ('debug', 'info', 'warning', 'error'))
) WITH (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = false)
"""


def upgrade() -> None:
    """Create the table."""
    op.execute(RUN_LOGS)


def downgrade() -> None:
    """Drop it, with all lines."""
    op.execute("DROP TABLE rowcall.run_logs")
