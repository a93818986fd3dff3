"""A table for the lines that handlers log, kept with their run; and how often each worker sends a heartbeat."""

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

# Older code writes NULL.
HEARTBEAT = "ALTER TABLE rowcall.workers ADD COLUMN heartbeat_seconds double precision"


def upgrade() -> None:
    """Create the table and the column."""
    op.execute(RUN_LOGS)
    op.execute(HEARTBEAT)


def downgrade() -> None:
    """Drop them, with all lines."""
    op.execute("ALTER TABLE rowcall.workers DROP COLUMN heartbeat_seconds")
    op.execute("DROP TABLE rowcall.run_logs")
