"""The tables of operations: an operator's changes to many runs, which workers carry out."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from rowcall.schema.columns import check, id_column, metadata, moment, one_of

operations = Table(
    "operations",
    metadata,
    id_column(),
    Column("action", Text, nullable=False),
    # The filter as the operator sent it, with only the criteria that it named.
    Column("filter", JSONB, nullable=False),
    # For a reschedule: the new run_at of the runs.
    moment("run_at"),
    # Change at most this many runs; NULL means all that match.
    Column("max_runs", Integer),
    Column("canary", Boolean, nullable=False, server_default=text("false")),
    Column("reason", Text),
    Column("status", Text, nullable=False),
    # How many runs matched when the operation was requested; a lower bound unless all were counted.
    Column("matched", BigInteger, nullable=False),
    Column("counted_all", Boolean, nullable=False),
    Column("changed", BigInteger, nullable=False, server_default=text("0")),
    Column("refused", BigInteger, nullable=False, server_default=text("0")),
    # Where the next batch begins, as in the list of runs; NULL at the beginning.
    Column("cursor", Text),
    # The run that was changed, or refused, alone as the canary.
    Column("canary_run_id", BigInteger),
    # The run that carries it out, or that last did so.
    Column("run_id", BigInteger),
    Column("requested_by", Text, nullable=False),
    Column("key_owner", Text, nullable=False),
    Column("idempotency_key", Text),
    Column("request_fingerprint", Text, nullable=False),
    # Later than that of every run which the operation may change, even one enqueued in the same transaction.
    moment("created_at", default="statement_timestamp()"),
    moment("updated_at", default=True),
    moment("finished_at"),
    UniqueConstraint("key_owner", "idempotency_key"),
    one_of("action_known", "action", "retry", "cancel", "run_now", "reschedule"),
    one_of("status_known", "status", "canary", "waiting", "running", "stopped", "finished"),
    check("finished_iff_dated", "(status = 'finished') = (finished_at IS NOT NULL)"),
    check("reschedule_iff_run_at", "(action = 'reschedule') = (run_at IS NOT NULL)"),
    # The feed of events reads these.
    Index("operations_unfinished", "id", postgresql_where=text("finished_at IS NULL")),
)

# The runs that an operation did not change.  The primary key is the only index: it lists them by operation.
operation_refusals = Table(
    "operation_refusals",
    metadata,
    Column("operation_id", BigInteger, ForeignKey(operations.c.id, ondelete="CASCADE"), primary_key=True),
    Column("run_id", BigInteger, primary_key=True, autoincrement=False),
    Column("reason", Text, nullable=False),
    moment("refused_at", default=True),
)
