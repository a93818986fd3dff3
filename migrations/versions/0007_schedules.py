"""Definitions that say what happens when clocks change, a heartbeat of the tick, runs that keep only their key."""

from alembic import op

revision = "0007"
down_revision = "0006"

UP = """
ALTER TABLE job_definitions
    ADD COLUMN missing_time text DEFAULT 'after' NOT NULL,
    ADD COLUMN repeated_time text DEFAULT 'once' NOT NULL,
    ADD COLUMN managed_by text DEFAULT 'api' NOT NULL,
    ADD COLUMN removed_at timestamptz,
    ADD CONSTRAINT job_definitions_missing_time_known CHECK (missing_time IN ('after', 'skip')),
    ADD CONSTRAINT job_definitions_repeated_time_known CHECK (repeated_time IN ('once', 'twice')),
    ADD CONSTRAINT job_definitions_managed_by_known CHECK (managed_by IN ('api', 'code', 'file')),
    ADD CONSTRAINT job_definitions_removed_is_not_due CHECK (removed_at IS NULL OR next_run_at IS NULL);
DROP INDEX job_definitions_due;
CREATE INDEX job_definitions_due ON job_definitions (next_run_at) WHERE next_run_at IS NOT NULL;

CREATE TABLE schedule_ticks (
    id smallint DEFAULT 1 NOT NULL,
    ticked_at timestamptz DEFAULT now() NOT NULL,
    worker text,
    CONSTRAINT schedule_ticks_pkey PRIMARY KEY (id),
    CONSTRAINT schedule_ticks_only_one CHECK (id = 1)
) WITH (fillfactor = 50);
INSERT INTO schedule_ticks DEFAULT VALUES;

ALTER TABLE job_runs ADD COLUMN pruned_at timestamptz;
CREATE INDEX job_runs_definition_live ON job_runs (definition_id)
    WHERE definition_id IS NOT NULL AND finished_at IS NULL;

ALTER TABLE job_runs SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05, vacuum_truncate = false
);
ALTER TABLE job_attempts SET (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = false);
"""

DOWN = """
ALTER TABLE job_attempts RESET (autovacuum_vacuum_scale_factor, vacuum_truncate);
ALTER TABLE job_runs RESET (
    autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_analyze_scale_factor, vacuum_truncate
);
DROP INDEX job_runs_definition_live;
ALTER TABLE job_runs DROP COLUMN pruned_at;
DROP TABLE schedule_ticks;
DROP INDEX job_definitions_due;
CREATE INDEX job_definitions_due ON job_definitions (next_run_at)
    WHERE paused_at IS NULL AND next_run_at IS NOT NULL;
ALTER TABLE job_definitions
    DROP COLUMN missing_time, DROP COLUMN repeated_time, DROP COLUMN managed_by, DROP COLUMN removed_at;
"""


def upgrade() -> None:
    """Add them."""
    op.execute(UP)


def downgrade() -> None:
    """Take them away again."""
    op.execute(DOWN)
