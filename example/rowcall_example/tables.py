"""The app's own tables, in the schema `example`, alongside Rowcall's schema `rowcall`.

A team would create them in its own migrations; the demo creates missing ones, so that one step is enough.
"""

from __future__ import annotations

from rowcall_example.errors import DemoRefused
from rowcall_example.sql import Connection, fetch_all, fetch_value

# Otherwise two processes could both find no schema, and one of them would fail.  The number is unlikely to be used by
# others: it is "example" on a phone's keypad.
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(3926753)"

# The app recognizes its own tables, which are all created in one transaction, by this comment on `example.users`.
MARK = "made by rowcall_example"

TABLES_ARE_THERE = "SELECT obj_description(to_regclass('example.users'), 'pg_class') = %(mark)s"

SCHEMA_HOLDS_SOMETHING = "SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('example'))"

# Not IF NOT EXISTS, which needs the right to create schemas even if a DBA has created this one.
SCHEMA_IS_MISSING = "SELECT to_regnamespace('example') IS NULL"

TABLES = f"""
CREATE TABLE example.users (
    id bigint GENERATED ALWAYS AS IDENTITY,
    email text NOT NULL,
    name text NOT NULL,
    time_zone text DEFAULT 'UTC' NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_email_key UNIQUE (email)
);
CREATE TABLE example.orders (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id bigint NOT NULL,
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    ordered_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT orders_pkey PRIMARY KEY (id),
    CONSTRAINT orders_amount_not_negative CHECK (amount_minor >= 0),
    CONSTRAINT orders_user_id_fkey FOREIGN KEY (user_id) REFERENCES example.users (id)
);
CREATE INDEX orders_day ON example.orders (ordered_at);
CREATE INDEX orders_user ON example.orders (user_id, ordered_at);
CREATE TABLE example.invoices (
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
CREATE INDEX invoices_due ON example.invoices (due_on) WHERE status = 'open';
CREATE TABLE example.sessions (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id bigint NOT NULL,
    started_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (id),
    CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES example.users (id) ON DELETE CASCADE
);
CREATE INDEX sessions_expiry ON example.sessions (expires_at);
CREATE INDEX sessions_user ON example.sessions (user_id, started_at);
CREATE TABLE example.cache_entries (
    name text NOT NULL,
    value jsonb NOT NULL,
    refreshed_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT cache_entries_pkey PRIMARY KEY (name)
);
CREATE INDEX cache_entries_expiry ON example.cache_entries (expires_at);
COMMENT ON TABLE example.users IS '{MARK}';
"""


def create_tables(connection: Connection) -> None:
    """Create the tables unless they exist; refuse if the schema `example` belongs to somebody else."""
    fetch_all(connection, ONE_AT_A_TIME)
    if fetch_value(connection, TABLES_ARE_THERE, {"mark": MARK}):
        return
    if fetch_value(connection, SCHEMA_HOLDS_SOMETHING):
        raise DemoRefused(
            "this database has a schema `example` with tables that are not the demo's, so nothing was added: set"
            " DATABASE_URL to a database without that schema"
        )
    if fetch_value(connection, SCHEMA_IS_MISSING):
        fetch_all(connection, "CREATE SCHEMA example")
    fetch_all(connection, TABLES)
