"""What was done to the world, once per key."""

from alembic import op

revision = "0002"
down_revision = "0001"

TABLES = """
CREATE TABLE sent_emails (
    id bigint GENERATED ALWAYS AS IDENTITY,
    idempotency_key text NOT NULL,
    message_id text,
    recipient text,
    subject text,
    run_id bigint NOT NULL,
    lease_no integer NOT NULL,
    state text DEFAULT 'intent' NOT NULL,
    content_hash text NOT NULL,
    provider_reference text,
    intent_at timestamptz DEFAULT now() NOT NULL,
    applied_at timestamptz,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT sent_emails_pkey PRIMARY KEY (id),
    CONSTRAINT sent_emails_idempotency_key_key UNIQUE (idempotency_key),
    CONSTRAINT sent_emails_state_known CHECK (state IN ('intent', 'applied', 'unknown', 'refused')),
    CONSTRAINT sent_emails_applied_iff_dated CHECK ((state = 'applied') = (applied_at IS NOT NULL))
);
CREATE INDEX sent_emails_run ON sent_emails (run_id);
CREATE TABLE sent_reports (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id bigint NOT NULL,
    week_start_date date NOT NULL,
    run_id bigint NOT NULL,
    lease_no integer NOT NULL,
    state text DEFAULT 'intent' NOT NULL,
    content_hash text NOT NULL,
    provider_reference text,
    intent_at timestamptz DEFAULT now() NOT NULL,
    applied_at timestamptz,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT sent_reports_pkey PRIMARY KEY (id),
    CONSTRAINT sent_reports_user_id_week_start_date_key UNIQUE (user_id, week_start_date),
    CONSTRAINT sent_reports_state_known CHECK (state IN ('intent', 'applied', 'unknown', 'refused')),
    CONSTRAINT sent_reports_applied_iff_dated CHECK ((state = 'applied') = (applied_at IS NOT NULL))
);
CREATE INDEX sent_reports_run ON sent_reports (run_id);
CREATE TABLE payments (
    id bigint GENERATED ALWAYS AS IDENTITY,
    idempotency_key text NOT NULL,
    invoice_id bigint,
    amount_minor bigint,
    currency text,
    run_id bigint NOT NULL,
    lease_no integer NOT NULL,
    state text DEFAULT 'intent' NOT NULL,
    content_hash text NOT NULL,
    provider_reference text,
    intent_at timestamptz DEFAULT now() NOT NULL,
    applied_at timestamptz,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT payments_pkey PRIMARY KEY (id),
    CONSTRAINT payments_idempotency_key_key UNIQUE (idempotency_key),
    CONSTRAINT payments_state_known CHECK (state IN ('intent', 'applied', 'unknown', 'refused')),
    CONSTRAINT payments_applied_iff_dated CHECK ((state = 'applied') = (applied_at IS NOT NULL))
);
CREATE INDEX payments_run ON payments (run_id);
CREATE TABLE delivered_webhooks (
    id bigint GENERATED ALWAYS AS IDENTITY,
    event_id text NOT NULL,
    url text,
    response_status integer,
    run_id bigint NOT NULL,
    lease_no integer NOT NULL,
    state text DEFAULT 'intent' NOT NULL,
    content_hash text NOT NULL,
    provider_reference text,
    intent_at timestamptz DEFAULT now() NOT NULL,
    applied_at timestamptz,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT delivered_webhooks_pkey PRIMARY KEY (id),
    CONSTRAINT delivered_webhooks_event_id_key UNIQUE (event_id),
    CONSTRAINT delivered_webhooks_state_known CHECK (state IN ('intent', 'applied', 'unknown', 'refused')),
    CONSTRAINT delivered_webhooks_applied_iff_dated CHECK ((state = 'applied') = (applied_at IS NOT NULL))
);
CREATE INDEX delivered_webhooks_run ON delivered_webhooks (run_id);
CREATE TABLE generated_files (
    id bigint GENERATED ALWAYS AS IDENTITY,
    type text NOT NULL,
    date date NOT NULL,
    key text NOT NULL,
    path text,
    sha256 TEXT,
    size_bytes bigint,
    run_id bigint NOT NULL,
    lease_no integer NOT NULL,
    state text DEFAULT 'intent' NOT NULL,
    content_hash text NOT NULL,
    provider_reference text,
    intent_at timestamptz DEFAULT now() NOT NULL,
    applied_at timestamptz,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT generated_files_pkey PRIMARY KEY (id),
    CONSTRAINT generated_files_type_date_key_key UNIQUE (type, date, key),
    CONSTRAINT generated_files_state_known CHECK (state IN ('intent', 'applied', 'unknown', 'refused')),
    CONSTRAINT generated_files_applied_iff_dated CHECK ((state = 'applied') = (applied_at IS NOT NULL))
);
CREATE INDEX generated_files_run ON generated_files (run_id);
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(TABLES)


def downgrade() -> None:
    """Drop them again."""
    op.execute("DROP TABLE generated_files, delivered_webhooks, payments, sent_reports, sent_emails")
