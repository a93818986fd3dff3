"""Runs keep what handlers log; failures and ends of attempts are counted by minute; operations change many runs.

A run can have further idempotency keys.  Alerts have incidents.  The operator's page has sessions and saved views.
Pruned runs can be archived in a table.
"""

from alembic import op

from rowcall_migrations import archive
from rowcall_migrations.inserting import INSERT_RUN, REQUEST_KEYS, RIGHTS_OF_INSERTERS

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

RUN_COUNTS = """
CREATE TABLE rowcall.run_counts (
    minute timestamptz NOT NULL,
    job_type text NOT NULL,
    worker text NOT NULL,
    succeeded integer NOT NULL,
    failed integer NOT NULL,
    dead integer NOT NULL,
    cancelled integer NOT NULL,
    snoozed integer NOT NULL,
    released integer NOT NULL,
    waiting integer[] NOT NULL,
    running integer[] NOT NULL,
    CONSTRAINT run_counts_pkey PRIMARY KEY (minute, job_type, worker)
) WITH (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = false);
CREATE TABLE rowcall.worker_versions (
    version text NOT NULL,
    first_seen_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT worker_versions_pkey PRIMARY KEY (version)
)
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
    created_at timestamptz DEFAULT statement_timestamp() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    finished_at timestamptz,
    CONSTRAINT operations_pkey PRIMARY KEY (id),
    CONSTRAINT operations_action_known CHECK (action IN ('retry', 'cancel', 'run_now', 'reschedule')),
    CONSTRAINT operations_status_known CHECK (status IN ('canary', 'waiting', 'running', 'stopped', 'finished')),
    CONSTRAINT operations_finished_iff_dated CHECK ((status = 'finished') = (finished_at IS NOT NULL)),
    CONSTRAINT operations_reschedule_iff_run_at CHECK ((action = 'reschedule') = (run_at IS NOT NULL)),
    CONSTRAINT operations_key_owner_idempotency_key_key UNIQUE (key_owner, idempotency_key)
);
CREATE INDEX operations_unfinished ON rowcall.operations (id) WHERE finished_at IS NULL;
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

# The state before a change and the state after it may concern two people, and each can be erased without the other.
REFUSE_AUDIT_CHANGE = """
CREATE OR REPLACE FUNCTION rowcall.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF to_jsonb(NEW) - '{{before,after}}'::text[] = to_jsonb(OLD) - '{{before,after}}'::text[]
            AND ({unchanged_before}NEW.before IS NOT DISTINCT FROM OLD.before - '{{payload,refusal}}'::text[])
            AND ({unchanged_after}NEW.after IS NOT DISTINCT FROM OLD.after - '{{payload,refusal}}'::text[])
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'audit_log is append-only; only a payload and a refusal can be erased'
        USING ERRCODE = 'restrict_violation';
END
$$
"""
ONE_SIDE = REFUSE_AUDIT_CHANGE.format(
    unchanged_before="NEW.before IS NOT DISTINCT FROM OLD.before OR ",
    unchanged_after="NEW.after IS NOT DISTINCT FROM OLD.after OR ",
)
BOTH_SIDES = REFUSE_AUDIT_CHANGE.format(unchanged_before="", unchanged_after="")

INCIDENTS = """
CREATE TABLE rowcall.incidents (
    id bigint GENERATED ALWAYS AS IDENTITY,
    alert text NOT NULL,
    subject text NOT NULL,
    details jsonb NOT NULL,
    opened_at timestamptz DEFAULT now() NOT NULL,
    seen_at timestamptz,
    ended_at timestamptz,
    CONSTRAINT incidents_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50, vacuum_truncate = false);
CREATE UNIQUE INDEX incidents_open ON rowcall.incidents (alert, subject) WHERE ended_at IS NULL;
CREATE TABLE rowcall.alert_checks (
    app text NOT NULL,
    checked_at timestamptz NOT NULL,
    own_types text[] NOT NULL,
    CONSTRAINT alert_checks_pkey PRIMARY KEY (app)
) WITH (fillfactor = 50)
"""

PINGS = """
CREATE TABLE rowcall.pings (
    definition_id bigint NOT NULL,
    begun text,
    ended text,
    asked_at timestamptz,
    finished_at timestamptz,
    run_id bigint,
    CONSTRAINT pings_pkey PRIMARY KEY (definition_id)
) WITH (fillfactor = 50);
ALTER TABLE rowcall.job_definitions ADD COLUMN ping_url text;
CREATE INDEX job_definitions_pinged ON rowcall.job_definitions (id) WHERE ping_url IS NOT NULL
"""

PAGE_SESSIONS = """
CREATE TABLE rowcall.page_sessions (
    token_sha256 bytea NOT NULL,
    key_id bigint NOT NULL,
    is_link boolean NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT page_sessions_pkey PRIMARY KEY (token_sha256)
)
"""

PAGE_VIEWS = """
CREATE TABLE rowcall.page_views (
    name text NOT NULL,
    query text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT page_views_pkey PRIMARY KEY (name)
)
"""

# How often a worker sends a heartbeat; older code writes NULL.
HEARTBEAT = "ALTER TABLE rowcall.workers ADD COLUMN heartbeat_seconds double precision"

# A claimed row is longer than a queued one, so half a page has no room for the claims of the other half.
ROOM_FOR_CLAIMS = "ALTER TABLE rowcall.job_runs SET (fillfactor = 40)"

# Lists and pruning read runs in the order of ids.  So that times have the same order, a run's time is that at which it
# takes its id, not that of the transaction or of the statement, which may have waited for a lock.
TIME_OF_ID = "ALTER TABLE rowcall.job_runs ALTER created_at SET DEFAULT clock_timestamp()"
TIME_OF_TRANSACTION = "ALTER TABLE rowcall.job_runs ALTER created_at SET DEFAULT now()"


def upgrade() -> None:
    """Create what this revision adds, and replace the function.  Workers count the failures of the last days, too.

    The strongest lock on job_runs comes first: to get a stronger one later could deadlock with a transaction that has
    read the table and now writes to it.
    """
    op.execute(TIME_OF_ID)
    op.execute("DROP INDEX rowcall.job_runs_created")
    op.execute(RUN_LOGS)
    op.execute(DELETED_WITH_THEIR_RUN)
    op.execute(FAILURE_COUNTS)
    op.execute(RUN_COUNTS)
    op.execute(OPERATIONS)
    op.execute(REQUEST_KEYS)
    op.execute(INSERT_RUN)
    op.execute(RIGHTS_OF_INSERTERS)
    op.execute(INCIDENTS)
    op.execute(PINGS)
    op.execute(PAGE_SESSIONS)
    op.execute(PAGE_VIEWS)
    op.execute(ONE_SIDE)
    op.execute(HEARTBEAT)
    op.execute(ROOM_FOR_CLAIMS)
    for statement in archive.CREATE:
        op.execute(statement)


def downgrade() -> None:
    """Drop these tables with their rows, and restore the function that guards the audit log."""
    op.execute(archive.DROP)
    op.execute(TIME_OF_TRANSACTION)
    op.execute("CREATE INDEX job_runs_created ON rowcall.job_runs (created_at, id)")
    op.execute("ALTER TABLE rowcall.job_runs SET (fillfactor = 50)")
    op.execute("ALTER TABLE rowcall.workers DROP COLUMN heartbeat_seconds")
    op.execute(BOTH_SIDES)
    op.execute("ALTER TABLE rowcall.job_definitions DROP COLUMN ping_url")
    op.execute("DROP TABLE rowcall.incidents, rowcall.alert_checks, rowcall.pings")
    op.execute("DROP TABLE rowcall.page_sessions, rowcall.page_views")
    op.execute("DROP TRIGGER job_runs_keys_deleted ON rowcall.job_runs")
    op.execute("DROP FUNCTION rowcall.delete_request_keys(), rowcall.free_keys(text, text[]), rowcall.insert_run")
    op.execute("DROP TABLE rowcall.request_keys")
    op.execute("DROP TABLE rowcall.operation_refusals, rowcall.operations")
    op.execute("DROP TABLE rowcall.run_counts, rowcall.worker_versions")
    op.execute("DROP TABLE rowcall.failure_counts")
    op.execute("DROP TRIGGER job_runs_log_deleted ON rowcall.job_runs")
    op.execute("DROP FUNCTION rowcall.delete_run_log()")
    op.execute("DROP TABLE rowcall.run_logs")
