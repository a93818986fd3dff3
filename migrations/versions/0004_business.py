"""The small SaaS that the built-in jobs serve."""

from alembic import op

revision = "0004"
down_revision = "0003"

TABLES = """
CREATE TABLE users (
    id bigint GENERATED ALWAYS AS IDENTITY,
    email text NOT NULL,
    name text NOT NULL,
    time_zone text DEFAULT 'UTC' NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_email_key UNIQUE (email)
);
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id bigint NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    ordered_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT orders_pkey PRIMARY KEY (id),
    CONSTRAINT orders_amount_not_negative CHECK (amount_minor >= 0),
    CONSTRAINT orders_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE INDEX orders_day ON orders (ordered_at);
CREATE INDEX orders_user ON orders (user_id, ordered_at);
CREATE TABLE invoices (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id bigint NOT NULL,
    number text NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    status text DEFAULT 'open' NOT NULL,
    due_on date NOT NULL,
    paid_at timestamptz,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT invoices_pkey PRIMARY KEY (id),
    CONSTRAINT invoices_status_known CHECK (status IN ('open', 'paid', 'void')),
    CONSTRAINT invoices_paid_iff_dated CHECK ((status = 'paid') = (paid_at IS NOT NULL)),
    CONSTRAINT invoices_amount_not_negative CHECK (amount_minor >= 0),
    CONSTRAINT invoices_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT invoices_number_key UNIQUE (number)
);
CREATE INDEX invoices_due ON invoices (due_on) WHERE status = 'open';
CREATE TABLE sessions (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id bigint NOT NULL,
    started_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (id),
    CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_user ON sessions (user_id, started_at);
CREATE TABLE cache_entries (
    name text NOT NULL,
    value jsonb NOT NULL,
    refreshed_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT cache_entries_pkey PRIMARY KEY (name)
);
CREATE INDEX cache_entries_expiry ON cache_entries (expires_at);
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(TABLES)


def downgrade() -> None:
    """Drop them again."""
    op.execute("DROP TABLE cache_entries, sessions, invoices, orders, users")
