"""The ledger of effects, workers, queues, keys and the audit log; and how enqueue wakes a worker."""

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

# Table -> the columns of its key, and all columns that only this table has.
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
    "other_effects": ("kind, key", "kind text NOT NULL, key text NOT NULL"),
}

OTHER_EFFECTS_KIND = "CREATE INDEX other_effects_kind ON rowcall.other_effects (kind, id)"

# Enqueue calls this for a due run, after inserting its row.  In READ COMMITTED it sees every worker that was asleep by
# then; at other levels its snapshot may be older.  A SET search_path here would cost more than the function itself.
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
    job_types text[],
    queues text[],
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    replaced_at timestamptz,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_name_plain CHECK (name ~ '^[A-Za-z0-9]([A-Za-z0-9 ._@-]{0,98}[A-Za-z0-9])?$'),
    CONSTRAINT api_keys_scopes_known
        CHECK (scopes <@ ARRAY['enqueue', 'read', 'operate', 'admin'] AND scopes <> '{}'),
    CONSTRAINT api_keys_prefix_key UNIQUE (prefix)
);
CREATE UNIQUE INDEX api_keys_name_current ON rowcall.api_keys (name) WHERE revoked_at IS NULL AND replaced_at IS NULL;

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
CREATE FUNCTION rowcall.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF to_jsonb(NEW) - '{before,after}'::text[] = to_jsonb(OLD) - '{before,after}'::text[]
            AND NEW.before IS NOT DISTINCT FROM OLD.before - '{payload,refusal}'::text[]
            AND NEW.after IS NOT DISTINCT FROM OLD.after - '{payload,refusal}'::text[]
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'audit_log is append-only; only a payload and a refusal can be erased'
        USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE ON rowcall.audit_log
    FOR EACH ROW EXECUTE FUNCTION rowcall.refuse_audit_change();
CREATE TRIGGER audit_log_undeletable BEFORE DELETE OR TRUNCATE ON rowcall.audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION rowcall.refuse_audit_change()
"""
