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

# Code of 0001 prunes and erases beside this schema, and knows nothing of the lines.  So the database deletes them, with
# the owner's rights, because older grants give none.  Only statements that delete runs or set pruned_at pay for it.
DELETED_WITH_THEIR_RUN = """
CREATE FUNCTION rowcall.delete_run_log() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    DELETE FROM rowcall.run_logs WHERE run_id = OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER job_runs_log_deleted AFTER DELETE OR UPDATE OF pruned_at ON rowcall.job_runs
    FOR EACH ROW EXECUTE FUNCTION rowcall.delete_run_log()
"""


def upgrade() -> None:
    """Create the table and the trigger."""
    op.execute(RUN_LOGS)
    op.execute(DELETED_WITH_THEIR_RUN)


def downgrade() -> None:
    """Drop them, with all lines."""
    op.execute("DROP TRIGGER job_runs_log_deleted ON rowcall.job_runs")
    op.execute("DROP FUNCTION rowcall.delete_run_log()")
    op.execute("DROP TABLE rowcall.run_logs")
