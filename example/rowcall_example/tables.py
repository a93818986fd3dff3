"""The small SaaS's own tables, in a schema of their own, as a team keeps its tables beside Rowcall's."""

from __future__ import annotations

from rowcall.base.database import Connection, fetch_all

# Two that come first at once would both find no schema, and one of them would fail: "example" on a telephone's keys.
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(3926753)"

TABLES = """
CREATE SCHEMA IF NOT EXISTS example;
CREATE TABLE IF NOT EXISTS example.users (
    id bigint GENERATED ALWAYS AS IDENTITY,
    email text NOT NULL,
    name text NOT NULL,
    time_zone text DEFAULT 'UTC' NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_email_key UNIQUE (email)
);
CREATE TABLE IF NOT EXISTS example.orders (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id bigint NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    ordered_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT orders_pkey PRIMARY KEY (id),
    CONSTRAINT orders_amount_not_negative CHECK (amount_minor >= 0),
    CONSTRAINT orders_user_id_fkey FOREIGN KEY (user_id) REFERENCES example.users (id)
);
CREATE INDEX IF NOT EXISTS orders_day ON example.orders (ordered_at);
CREATE INDEX IF NOT EXISTS orders_user ON example.orders (user_id, ordered_at);
CREATE TABLE IF NOT EXISTS example.invoices (
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
    CONSTRAINT invoices_user_id_fkey FOREIGN KEY (user_id) REFERENCES example.users (id),
    CONSTRAINT invoices_number_key UNIQUE (number)
);
CREATE INDEX IF NOT EXISTS invoices_due ON example.invoices (due_on) WHERE status = 'open';
CREATE TABLE IF NOT EXISTS example.sessions (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id bigint NOT NULL,
    started_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (id),
    CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES example.users (id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS sessions_expiry ON example.sessions (expires_at);
CREATE INDEX IF NOT EXISTS sessions_user ON example.sessions (user_id, started_at);
CREATE TABLE IF NOT EXISTS example.cache_entries (
    name text NOT NULL,
    value jsonb NOT NULL,
    refreshed_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT cache_entries_pkey PRIMARY KEY (name)
);
CREATE INDEX IF NOT EXISTS cache_entries_expiry ON example.cache_entries (expires_at);
"""


def create_tables(connection: Connection) -> None:
    """Create the tables that are not there yet."""
    fetch_all(connection, ONE_AT_A_TIME)
    fetch_all(connection, TABLES)
