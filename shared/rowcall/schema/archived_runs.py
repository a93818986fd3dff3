"""The table of archived runs: the columns of job_runs, and in the same row the attempts and the log."""

from __future__ import annotations

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Table, text
from sqlalchemy.dialects.postgresql import JSONB

from rowcall.schema.columns import metadata, moment
from rowcall.schema.runs import job_runs

# Divided by month.  A function of the owner attaches the months, because workers cannot.
archived_runs = Table(
    "archived_runs",
    metadata,
    *(Column(column.name, column.type, nullable=column.nullable) for column in job_runs.columns),
    # The attempts that did not succeed, and the lines that the handler logged, as rows of their tables.
    Column("attempts_ended", JSONB, nullable=False),
    Column("log", JSONB, nullable=False),
    # The keys of other requests that this run answered, a list of text; written when its bare row is deleted.
    Column("further_keys", JSONB),
    moment("archived_at", default=True),
    # A unique index of a divided table contains the column by which it is divided.
    PrimaryKeyConstraint("id", "created_at"),
    postgresql_partition_by="RANGE (created_at)",
)

# For the lists that have such an index on job_runs.
Index(
    "archived_runs_failed",
    archived_runs.c.created_at,
    archived_runs.c.id,
    postgresql_where=text("failed_at IS NOT NULL"),
)
Index(
    "archived_runs_definition",
    archived_runs.c.definition_id,
    archived_runs.c.created_at,
    archived_runs.c.id,
    postgresql_where=text("definition_id IS NOT NULL"),
)
# To find runs by their keys, which other runs may hold by now.
Index("archived_runs_held_key", archived_runs.c.held_key, postgresql_where=text("held_key IS NOT NULL"))
Index(
    "archived_runs_idempotency_key",
    archived_runs.c.idempotency_key,
    postgresql_where=text("idempotency_key IS NOT NULL"),
)
Index(
    "archived_runs_further_keys",
    archived_runs.c.further_keys,
    postgresql_using="gin",
    postgresql_where=text("further_keys IS NOT NULL"),
)
