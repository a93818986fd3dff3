"""The tables of definitions, runs, attempts and occurrences."""

RUNS = """
CREATE TABLE rowcall.job_definitions (
    id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    job_type text NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    schedule text,
    time_zone text DEFAULT 'UTC' NOT NULL,
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
    natural_key text,
    unique_mode text DEFAULT 'ever' NOT NULL,
    held_key text GENERATED ALWAYS AS (
        CASE WHEN finished_at IS NULL OR unique_mode = 'ever' OR (unique_mode = 'until_failed' AND status = 'succeeded')
             THEN natural_key END
    ) STORED,
    content_fingerprint text,
    idempotency_key text,
    key_owner text DEFAULT 'app' NOT NULL,
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
    CONSTRAINT job_runs_unique_mode_known CHECK (unique_mode IN ('ever', 'until_failed', 'live')),
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
CREATE UNIQUE INDEX job_runs_idempotency_key ON rowcall.job_runs (idempotency_key, key_owner)
    WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX job_runs_held_key ON rowcall.job_runs (held_key, job_type) WHERE held_key IS NOT NULL;
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
