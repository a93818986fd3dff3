"""Tables for the lines that handlers log, and for the failed attempts counted by minute."""

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

FAILURE_COUNTS = """
CREATE TABLE rowcall.failure_counts (
    minute timestamptz NOT NULL,
    job_type text NOT NULL,
    queue text NOT NULL,
    error_type text NOT NULL,
    error_key text NOT NULL,
    failures bigint NOT NULL,
    last_at timestamptz NOT NULL,
    run_id bigint NOT NULL,
    lease_no integer NOT NULL,
    CONSTRAINT failure_counts_pkey PRIMARY KEY (minute, job_type, queue, error_type, error_key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = false)
"""


def upgrade() -> None:
    """Create the tables.  The workers then count the failed attempts of the last days, too."""
    op.execute(RUN_LOGS)
    op.execute(FAILURE_COUNTS)


def downgrade() -> None:
    """Drop them, with all lines and counts."""
    op.execute("DROP TABLE rowcall.failure_counts")
    op.execute("DROP TABLE rowcall.run_logs")
