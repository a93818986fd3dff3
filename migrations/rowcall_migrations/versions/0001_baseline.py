"""All tables of Rowcall 0.2, in a schema of their own.

Frozen from 0.2.0 on: what is different afterwards is a version of its own.
"""

from alembic import op

revision = "0001"
down_revision = None
fits = "0001"

# Alembic's own table: `fits` tells older code whether it can go on with a schema that it does not know.
VERSION = "ALTER TABLE rowcall.schema_version ADD COLUMN IF NOT EXISTS fits text"

RUNS = """
CREATE TABLE rowcall.job_definitions (
    id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    job_type text NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    schedule text,
    time_zone text DEFAULT 'UTC' NOT NULL,
    missing_time text DEFAULT 'after' NOT NULL,
    repeated_time text DEFAULT 'once' NOT NULL,
    catch_up text DEFAULT 'latest' NOT NULL,
    max_lateness interval,
    overlap text DEFAULT 'skip' NOT NULL,
    jitter interval DEFAULT '0'::interval NOT NULL,
    queue text,
    priority smallint DEFAULT 0 NOT NULL,
    max_attempts integer,
    paused_at timestamptz,
    revision integer DEFAULT 1 NOT NULL,
    next_run_at timestamptz,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    managed_by text DEFAULT 'api' NOT NULL,
    removed_at timestamptz,
    CONSTRAINT job_definitions_pkey PRIMARY KEY (id),
    CONSTRAINT job_definitions_missing_time_known CHECK (missing_time IN ('after', 'skip')),
    CONSTRAINT job_definitions_repeated_time_known CHECK (repeated_time IN ('once', 'twice')),
    CONSTRAINT job_definitions_catch_up_known CHECK (catch_up IN ('skip', 'latest', 'all')),
    CONSTRAINT job_definitions_overlap_known CHECK (overlap IN ('allow', 'skip')),
    CONSTRAINT job_definitions_max_attempts_positive CHECK (max_attempts > 0),
    CONSTRAINT job_definitions_managed_by_known CHECK (managed_by IN ('api', 'code', 'file')),
    CONSTRAINT job_definitions_removed_is_not_due CHECK (removed_at IS NULL OR next_run_at IS NULL),
    CONSTRAINT job_definitions_name_key UNIQUE (name)
);
CREATE INDEX job_definitions_due ON rowcall.job_definitions (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX job_definitions_paused ON rowcall.job_definitions (id) WHERE paused_at IS NOT NULL;

CREATE TABLE rowcall.job_runs (
    id bigint GENERATED ALWAYS AS IDENTITY,
    definition_id bigint,
    scheduled_for timestamptz,
    job_type text NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    queue text DEFAULT 'default' NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    run_at timestamptz DEFAULT now() NOT NULL,
    status text DEFAULT 'queued' NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    max_attempts integer DEFAULT 10 NOT NULL,
    lease_no integer DEFAULT 0 NOT NULL,
    locked_by text,
    locked_until timestamptz,
    cancel_requested_at timestamptz,
    suspect integer DEFAULT 0 NOT NULL,
    idempotency_key text,
    request_fingerprint text,
    last_error text,
    error_type text,
    failed_at timestamptz,
    last_stack text,
    progress jsonb,
    result jsonb,
    trace_parent text,
    created_by text,
    started_at timestamptz,
    finished_at timestamptz,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    pruned_at timestamptz,
    CONSTRAINT job_runs_pkey PRIMARY KEY (id),
    CONSTRAINT job_runs_status_known
        CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'dead', 'cancelled')),
    CONSTRAINT job_runs_lease_iff_running
        CHECK ((status = 'running') = (locked_by IS NOT NULL)
            AND (status = 'running') = (locked_until IS NOT NULL)),
    CONSTRAINT job_runs_finished_iff_final
        CHECK ((status IN ('succeeded', 'dead', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT job_runs_result_bounded CHECK (octet_length(result::text) <= 65536),
    CONSTRAINT job_runs_saved_bounded CHECK (octet_length((progress -> 'saved')::text) <= 65536),
    CONSTRAINT job_runs_attempts_bounded CHECK (attempts BETWEEN 0 AND max_attempts AND max_attempts > 0),
    CONSTRAINT job_runs_definition_id_fkey
        FOREIGN KEY (definition_id) REFERENCES rowcall.job_definitions (id) ON DELETE SET NULL
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05, vacuum_truncate = false
);
CREATE INDEX job_runs_created ON rowcall.job_runs (created_at, id);
CREATE INDEX job_runs_definition ON rowcall.job_runs (definition_id, created_at, id) WHERE definition_id IS NOT NULL;
CREATE INDEX job_runs_definition_live ON rowcall.job_runs (definition_id)
    WHERE definition_id IS NOT NULL AND finished_at IS NULL;
CREATE INDEX job_runs_failed ON rowcall.job_runs (created_at, id) WHERE failed_at IS NOT NULL;
CREATE UNIQUE INDEX job_runs_idempotency_key ON rowcall.job_runs (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX job_runs_live ON rowcall.job_runs (queue, priority, run_at, id) WHERE finished_at IS NULL;
CREATE INDEX job_runs_suspect ON rowcall.job_runs (queue, priority, run_at, id)
    WHERE finished_at IS NULL AND suspect > 0;
CREATE UNIQUE INDEX job_runs_occurrence ON rowcall.job_runs (definition_id, scheduled_for)
    WHERE definition_id IS NOT NULL;

CREATE TABLE rowcall.job_attempts (
    run_id bigint NOT NULL,
    lease_no integer NOT NULL,
    attempt integer NOT NULL,
    outcome text NOT NULL,
    worker text NOT NULL,
    started_at timestamptz,
    ended_at timestamptz DEFAULT now() NOT NULL,
    error_type text,
    error text,
    stack text,
    permanent boolean DEFAULT false NOT NULL,
    forensics jsonb,
    CONSTRAINT job_attempts_pkey PRIMARY KEY (run_id, lease_no),
    CONSTRAINT job_attempts_outcome_known
        CHECK (outcome IN ('fail', 'give up', 'release', 'snooze', 'expire', 'cancelled', 'force cancel')),
    CONSTRAINT job_attempts_run_id_fkey FOREIGN KEY (run_id) REFERENCES rowcall.job_runs (id) ON DELETE CASCADE
) WITH (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = false);
CREATE INDEX job_attempts_failed ON rowcall.job_attempts (ended_at) WHERE outcome IN ('fail', 'give up', 'expire');

CREATE TABLE rowcall.schedule_occurrences (
    definition_id bigint NOT NULL,
    nominal_at timestamptz NOT NULL,
    outcome text NOT NULL,
    reason text,
    revision integer NOT NULL,
    run_id bigint,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT schedule_occurrences_pkey PRIMARY KEY (definition_id, nominal_at),
    CONSTRAINT schedule_occurrences_outcome_known CHECK (outcome IN ('enqueued', 'skipped', 'missed')),
    CONSTRAINT schedule_occurrences_run_iff_enqueued CHECK ((outcome = 'enqueued') = (run_id IS NOT NULL)),
    CONSTRAINT schedule_occurrences_definition_id_fkey
        FOREIGN KEY (definition_id) REFERENCES rowcall.job_definitions (id) ON DELETE CASCADE
);

CREATE TABLE rowcall.schedule_ticks (
    id smallint DEFAULT 1 NOT NULL,
    ticked_at timestamptz DEFAULT now() NOT NULL,
    worker text,
    CONSTRAINT schedule_ticks_pkey PRIMARY KEY (id),
    CONSTRAINT schedule_ticks_only_one CHECK (id = 1)
) WITH (fillfactor = 50);
INSERT INTO rowcall.schedule_ticks DEFAULT VALUES
"""

# Effects have no foreign key to their run, because they outlive it.
EFFECT = """
CREATE TABLE rowcall.{table} (
    id bigint GENERATED ALWAYS AS IDENTITY,
    {columns},
    run_id bigint NOT NULL,
    lease_no integer NOT NULL,
    state text DEFAULT 'intent' NOT NULL,
    content_hash text NOT NULL,
    provider_reference text,
    refusal text,
    generation integer DEFAULT 1 NOT NULL,
    intent_at timestamptz DEFAULT now() NOT NULL,
    applied_at timestamptz,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT {table}_pkey PRIMARY KEY (id),
    CONSTRAINT {table}_{key_name}_key UNIQUE ({key}),
    CONSTRAINT {table}_state_known CHECK (state IN ('intent', 'applied', 'unknown', 'refused')),
    CONSTRAINT {table}_applied_iff_dated CHECK ((state = 'applied') = (applied_at IS NOT NULL))
);
CREATE INDEX {table}_open ON rowcall.{table} (state, id) WHERE state <> 'applied';
CREATE INDEX {table}_run ON rowcall.{table} (run_id)
"""

# Table -> the columns of its key, and all columns of its own.
EFFECTS = {
    "sent_emails": ("idempotency_key", "idempotency_key text NOT NULL, message_id text, recipient text, subject text"),
    "sent_reports": ("user_id, week_start_date", "user_id bigint NOT NULL, week_start_date date NOT NULL"),
    "payments": (
        "idempotency_key",
        "idempotency_key text NOT NULL, invoice_id bigint, amount_minor bigint, currency text",
    ),
    "delivered_webhooks": ("event_id", "event_id text NOT NULL, url text, response_status integer"),
    "generated_files": (
        "type, date, key",
        "type text NOT NULL, date date NOT NULL, key text NOT NULL, path text, sha256 text, size_bytes bigint",
    ),
}

# Enqueue calls this for a run that is due, after inserting its row.  In READ COMMITTED it sees every worker that was
# asleep by then; elsewhere its snapshot may be older.  A SET search_path here would cost more than the function itself.
WAKE = """
CREATE FUNCTION rowcall.wake(run_queue text, run_type text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed' OR EXISTS (
        SELECT FROM rowcall.workers
        WHERE sleeps_until OPERATOR(pg_catalog.>) pg_catalog.now() AND run_type OPERATOR(pg_catalog.=) ANY(job_types)
            AND (queues IS NULL OR run_queue OPERATOR(pg_catalog.=) ANY(queues))
    ) THEN
        PERFORM pg_catalog.pg_notify('rowcall_due', '');
    END IF;
END
$$
"""

OPERATIONS = """
CREATE TABLE rowcall.workers (
    id text NOT NULL,
    hostname text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    queues text[],
    job_types text[] NOT NULL,
    concurrency integer NOT NULL,
    started_at timestamptz DEFAULT now() NOT NULL,
    heartbeat_at timestamptz DEFAULT now() NOT NULL,
    stopped_at timestamptz,
    sleeps_until timestamptz,
    CONSTRAINT workers_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50);
CREATE INDEX workers_asleep ON rowcall.workers (sleeps_until) WHERE sleeps_until IS NOT NULL;

CREATE TABLE rowcall.queues (
    name text NOT NULL,
    paused_at timestamptz,
    max_running integer,
    holders bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT queues_pkey PRIMARY KEY (name),
    CONSTRAINT queues_max_running_not_negative CHECK (max_running >= 0)
) WITH (fillfactor = 50);

CREATE TABLE rowcall.api_keys (
    id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    prefix text NOT NULL,
    secret_sha256 bytea NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_scopes_known
        CHECK (scopes <@ ARRAY['enqueue', 'read', 'operate', 'admin'] AND scopes <> '{}'),
    CONSTRAINT api_keys_prefix_key UNIQUE (prefix)
);

CREATE TABLE rowcall.audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz DEFAULT now() NOT NULL,
    who text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    subject_id bigint,
    before jsonb,
    after jsonb,
    request_id text,
    CONSTRAINT audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_subject ON rowcall.audit_log (subject, subject_id, id DESC);
CREATE FUNCTION rowcall.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_log is append-only' USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON rowcall.audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION rowcall.refuse_audit_change()
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(VERSION)
    op.execute(RUNS)
    for table, (key, columns) in EFFECTS.items():
        op.execute(EFFECT.format(table=table, key=key, columns=columns, key_name=key.replace(", ", "_")))
    op.execute(OPERATIONS)
    op.execute(WAKE)


def downgrade() -> None:
    """Drop them again; alembic's own table stays, empty."""
    op.execute(
        "DROP TABLE rowcall.audit_log, rowcall.api_keys, rowcall.queues, rowcall.workers, rowcall.generated_files,"
        " rowcall.delivered_webhooks, rowcall.payments, rowcall.sent_reports, rowcall.sent_emails,"
        " rowcall.schedule_ticks, rowcall.schedule_occurrences, rowcall.job_attempts, rowcall.job_runs,"
        " rowcall.job_definitions"
    )
    op.execute("DROP FUNCTION rowcall.refuse_audit_change(), rowcall.wake(text, text)")
