"""What should exist, what should run, and what happened."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Interval,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from shared import status
from shared.schema.base import check, id_column, metadata, moment, one_of

EMPTY = text("'{}'::jsonb")

job_definitions = Table(
    "job_definitions",
    metadata,
    id_column(),
    Column("name", Text, nullable=False, unique=True),
    Column("job_type", Text, nullable=False),
    Column("payload", JSONB, nullable=False, server_default=EMPTY),
    Column("schedule", Text),
    Column("time_zone", Text, nullable=False, server_default="UTC"),
    Column("catch_up", Text, nullable=False, server_default="latest"),
    Column("max_lateness", Interval),
    Column("overlap", Text, nullable=False, server_default="skip"),
    Column("jitter", Interval, nullable=False, server_default=text("'0'::interval")),
    Column("queue", Text),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("max_attempts", Integer),
    moment("paused_at"),
    Column("revision", Integer, nullable=False, server_default=text("1")),
    moment("next_run_at"),
    moment("created_at", default=True),
    moment("updated_at", default=True),
    one_of("catch_up_known", "catch_up", "skip", "latest", "all"),
    one_of("overlap_known", "overlap", "allow", "skip"),
    check("max_attempts_positive", "max_attempts > 0"),
)

# The schedule tick asks only this: which definitions are due.
Index(
    "job_definitions_due",
    job_definitions.c.next_run_at,
    postgresql_where=text("paused_at IS NULL AND next_run_at IS NOT NULL"),
)

job_runs = Table(
    "job_runs",
    metadata,
    id_column(),
    Column("definition_id", BigInteger, ForeignKey("job_definitions.id", ondelete="SET NULL")),
    moment("scheduled_for"),
    Column("job_type", Text, nullable=False),
    Column("payload", JSONB, nullable=False, server_default=EMPTY),
    Column("queue", Text, nullable=False, server_default="default"),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    moment("run_at", default=True),
    Column("status", Text, nullable=False, server_default=str(status.Status.QUEUED)),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("max_attempts", Integer, nullable=False, server_default=text("10")),
    Column("lease_no", Integer, nullable=False, server_default=text("0")),
    Column("locked_by", Text),
    moment("locked_until"),
    moment("cancel_requested_at"),
    Column("idempotency_key", Text),
    Column("request_fingerprint", Text),
    Column("last_error", Text),
    Column("error_type", Text),
    moment("failed_at"),
    Column("last_stack", Text),
    Column("progress", JSONB),
    Column("result", JSONB),
    Column("trace_parent", Text),
    Column("created_by", Text),
    moment("started_at"),
    moment("finished_at"),
    moment("created_at", default=True),
    moment("updated_at", default=True),
    *(check(name, condition) for name, condition in status.CHECKS.items()),
    check("attempts_bounded", "attempts BETWEEN 0 AND max_attempts AND max_attempts > 0"),
    # Half of each page is left free, so that claim and heartbeat find room for the row's next version beside it.
    postgresql_with={"fillfactor": 50},
)

# No index and no predicate below names a column that claim or heartbeat changes (status, attempts, lease_no,
# locked_by, locked_until, started_at, updated_at, ...), so that both stay heap-only updates that touch no index.

# The claim walks this from its head: live rows, lane (queue and priority) by lane, the longest due first.
Index(
    "job_runs_live",
    job_runs.c.queue,
    job_runs.c.priority,
    job_runs.c.run_at,
    job_runs.c.id,
    postgresql_where=text("finished_at IS NULL"),
)
# One business fact, one run: the arbiter of every idempotent enqueue.
Index(
    "job_runs_idempotency_key",
    job_runs.c.idempotency_key,
    unique=True,
    postgresql_where=text("idempotency_key IS NOT NULL"),
)
# One occurrence of a schedule, one run; also finds a definition's runs.
Index(
    "job_runs_occurrence",
    job_runs.c.definition_id,
    job_runs.c.scheduled_for,
    unique=True,
    postgresql_where=text("definition_id IS NOT NULL"),
)
# The lists: newest first, by cursor.
Index("job_runs_created", job_runs.c.created_at, job_runs.c.id)

# Every attempt that did not end in success; the success is the run's own row.
job_attempts = Table(
    "job_attempts",
    metadata,
    Column("run_id", BigInteger, ForeignKey("job_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("lease_no", Integer, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("worker", Text, nullable=False),
    moment("started_at"),
    moment("ended_at", default=True),
    Column("error_type", Text),
    Column("error", Text),
    Column("stack", Text),
    Column("permanent", Boolean, nullable=False, server_default=text("false")),
    Column("forensics", JSONB),
    one_of(
        "outcome_known",
        "outcome",
        *(
            event
            for event in (
                status.Event.FAIL,
                status.Event.GIVE_UP,
                status.Event.RELEASE,
                status.Event.SNOOZE,
                status.Event.EXPIRE,
                status.Event.CANCELLED,
                status.Event.FORCE_CANCEL,
            )
        ),
    ),
)

# Every nominal time of a schedule, also the ones that led to no run; its key keeps two schedulers from enqueuing twice.
schedule_occurrences = Table(
    "schedule_occurrences",
    metadata,
    Column("definition_id", BigInteger, ForeignKey("job_definitions.id", ondelete="CASCADE"), primary_key=True),
    Column("nominal_at", moment("").type, primary_key=True),
    Column("outcome", Text, nullable=False),
    Column("reason", Text),
    Column("revision", Integer, nullable=False),
    Column("run_id", BigInteger),
    moment("created_at", default=True),
    one_of("outcome_known", "outcome", "enqueued", "skipped", "missed"),
    check("run_iff_enqueued", "(outcome = 'enqueued') = (run_id IS NOT NULL)"),
)
