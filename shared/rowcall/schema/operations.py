"""The tables of workers, queues, API keys and the audit log."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from rowcall.schema.columns import check, id_column, metadata, moment, storage

workers = Table(
    "workers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hostname", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),
    # NULL means all queues.
    Column("queues", ARRAY(Text)),
    Column("job_types", ARRAY(Text), nullable=False),
    Column("concurrency", Integer, nullable=False),
    moment("started_at", default=True),
    moment("heartbeat_at", default=True),
    moment("stopped_at"),
    # While this time is in the future, the worker is asleep, and is notified of new runs.
    moment("sleeps_until"),
    # How often it sends a heartbeat; NULL if its code is older than this column.
    Column("heartbeat_seconds", Double),
    # Updated at every heartbeat: with free space on the page, that is a heap-only update.
    info=storage(fillfactor=50),
)

# Each enqueue checks whether a worker sleeps, and workers started by cron add many rows.
Index("workers_asleep", workers.c.sleeps_until, postgresql_where=text("sleeps_until IS NOT NULL"))

queues = Table(
    "queues",
    metadata,
    Column("name", Text, primary_key=True),
    moment("paused_at"),
    Column("max_running", Integer),
    # Runs that were claimed from a queue with a limit; their own rows say which of them are still running.
    Column("holders", ARRAY(BigInteger), nullable=False, server_default=text("'{}'::bigint[]")),
    moment("created_at", default=True),
    moment("updated_at", default=True),
    check("max_running_not_negative", "max_running >= 0"),
    # Updated at every claim from a queue with a limit.
    info=storage(fillfactor=50),
)

api_keys = Table(
    "api_keys",
    metadata,
    id_column(),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False, unique=True),
    Column("secret_sha256", LargeBinary, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    # The job types and queues whose runs the key may enqueue and change; NULL means all.
    Column("job_types", ARRAY(Text)),
    Column("queues", ARRAY(Text)),
    moment("created_at", default=True),
    moment("expires_at"),
    moment("last_used_at"),
    moment("revoked_at"),
    # Set when a newer key takes the name; this key is valid until the end of its grace period.
    moment("replaced_at"),
    check("name_plain", "name ~ '^[A-Za-z0-9]([A-Za-z0-9 ._@-]{0,98}[A-Za-z0-9])?$'"),
    check("scopes_known", "scopes <@ ARRAY['enqueue', 'read', 'operate', 'admin'] AND scopes <> '{}'"),
)

# `created_by` and the audit log refer to a key by its name.
Index(
    "api_keys_name_current",
    api_keys.c.name,
    unique=True,
    postgresql_where=text("revoked_at IS NULL AND replaced_at IS NULL"),
)

# Append-only: a trigger refuses every DELETE and TRUNCATE, and every UPDATE except those of `rowcall erase`.
audit_log = Table(
    "audit_log",
    metadata,
    id_column(),
    moment("at", default=True),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("subject_id", BigInteger),
    Column("before", JSONB),
    Column("after", JSONB),
    Column("request_id", Text),
)
# To show what happened to a run, newest first.
Index("audit_log_subject", audit_log.c.subject, audit_log.c.subject_id, text("id DESC"))
