"""Who works, what is paused, who may call, and who did what."""

from alembic import op

revision = "0003"
down_revision = "0002"

TABLES = """
CREATE TABLE workers (
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
    CONSTRAINT workers_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50);
CREATE TABLE queues (
    name text NOT NULL,
    paused_at timestamptz,
    max_running integer,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT queues_pkey PRIMARY KEY (name),
    CONSTRAINT queues_max_running_not_negative CHECK (max_running >= 0)
);
CREATE TABLE api_keys (
    id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    prefix text NOT NULL,
    secret_sha256 BYTEA NOT NULL,
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
CREATE TABLE audit_log (
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
CREATE INDEX audit_log_subject ON audit_log (subject, subject_id, id DESC);
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_log is append-only' USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(TABLES)


def downgrade() -> None:
    """Drop them again."""
    op.execute("DROP TABLE audit_log, api_keys, queues, workers")
    op.execute("DROP FUNCTION refuse_audit_change()")
