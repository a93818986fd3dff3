"""Tables for the lines that handlers log, kept with their run, and for operations on many runs."""

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

OPERATIONS = """
CREATE TABLE rowcall.operations (
    id bigint GENERATED ALWAYS AS IDENTITY,
    action text NOT NULL,
    filter jsonb NOT NULL,
    run_at timestamptz,
    max_runs integer,
    canary boolean DEFAULT false NOT NULL,
    reason text,
    status text NOT NULL,
    matched bigint NOT NULL,
    counted_all boolean NOT NULL,
    changed bigint DEFAULT 0 NOT NULL,
    refused bigint DEFAULT 0 NOT NULL,
    cursor text,
    canary_run_id bigint,
    run_id bigint,
    requested_by text NOT NULL,
    key_owner text NOT NULL,
    idempotency_key text,
    request_fingerprint text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    finished_at timestamptz,
    CONSTRAINT operations_pkey PRIMARY KEY (id),
    CONSTRAINT operations_action_known CHECK (action IN ('retry', 'cancel', 'run_now', 'reschedule')),
    CONSTRAINT operations_status_known CHECK (status IN ('canary', 'waiting', 'running', 'stopped', 'finished')),
    CONSTRAINT operations_finished_iff_dated CHECK ((status = 'finished') = (finished_at IS NOT NULL)),
    CONSTRAINT operations_reschedule_iff_run_at CHECK ((action = 'reschedule') = (run_at IS NOT NULL)),
    CONSTRAINT operations_key_owner_idempotency_key_key UNIQUE (key_owner, idempotency_key)
);
CREATE TABLE rowcall.operation_refusals (
    operation_id bigint NOT NULL,
    run_id bigint NOT NULL,
    reason text NOT NULL,
    refused_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT operation_refusals_pkey PRIMARY KEY (operation_id, run_id),
    CONSTRAINT operation_refusals_operation_id_fkey
        FOREIGN KEY (operation_id) REFERENCES rowcall.operations (id) ON DELETE CASCADE
)
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(RUN_LOGS)
    op.execute(OPERATIONS)


def downgrade() -> None:
    """Drop them, with all lines and operations."""
    op.execute("DROP TABLE rowcall.operation_refusals, rowcall.operations")
    op.execute("DROP TABLE rowcall.run_logs")
