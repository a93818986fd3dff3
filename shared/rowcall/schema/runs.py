"""The tables of definitions, runs, attempts and occurrences."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Computed,
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

from rowcall import status
from rowcall.base.jsonb import KEPT_BYTES
from rowcall.schema.columns import check, id_column, metadata, moment, one_of, storage

EMPTY = text("'{}'::jsonb")

HELD_KEY = f"""
    CASE WHEN finished_at IS NULL OR unique_mode = 'ever'
              OR (unique_mode = 'until_failed' AND status = '{status.Status.SUCCEEDED}')
         THEN natural_key END
"""

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
    # What manages the definition: a file, the code, or the API.
    Column("managed_by", Text, nullable=False, server_default="api"),
    # The row of a removed definition stays, because its runs and occurrences refer to it.
    moment("removed_at"),
    Column("ping_url", Text),
    one_of("catch_up_known", "catch_up", "skip", "latest", "all"),
    one_of("overlap_known", "overlap", "allow", "skip"),
    check("max_attempts_positive", "max_attempts > 0"),
    one_of("managed_by_known", "managed_by", "api", "code", "file"),
    check("removed_is_not_due", "removed_at IS NULL OR next_run_at IS NULL"),
)

# For the tick: definitions that have a nominal time to process.  Paused definitions are included, because their nominal
# times are recorded as skipped.
Index("job_definitions_due", job_definitions.c.next_run_at, postgresql_where=text("next_run_at IS NOT NULL"))
# To count paused definitions, for monitoring.
Index("job_definitions_paused", job_definitions.c.id, postgresql_where=text("paused_at IS NOT NULL"))

# To find the few definitions with a ping_url, whose runs are reported to a service.
Index("job_definitions_pinged", job_definitions.c.id, postgresql_where=text("ping_url IS NOT NULL"))

job_runs = Table(
    "job_runs",
    metadata,
    id_column(),
    Column("definition_id", BigInteger, ForeignKey("rowcall.job_definitions.id", ondelete="SET NULL")),
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
    # The number of leases that the run has lost in a row.  An attempt that its worker ends reduces it to 1, or to 0 if
    # the last failure was more than an hour before.
    Column("suspect", Integer, nullable=False, server_default=text("0")),
    # The key of what the run is about, which the type derives from the payload, and how long no other run may hold it.
    Column("natural_key", Text),
    Column("unique_mode", Text, nullable=False, server_default="ever"),
    # The natural key while it excludes other runs; generated, so that no statement that ends or retries a run can
    # forget it.
    Column("held_key", Text, Computed(HELD_KEY, persisted=True)),
    # A request with the same natural key is a replay if it has this fingerprint.
    Column("content_fingerprint", Text),
    # The caller's key for one request, so that the caller can repeat it; each caller has separate keys.
    Column("idempotency_key", Text),
    Column("key_owner", Text, nullable=False, server_default="app"),
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
    # The time at which the run takes its id, so that both grow together.
    moment("created_at", default="clock_timestamp()"),
    moment("updated_at", default=True),
    # When the payload and details were deleted; the row is kept for its keys.
    moment("pruned_at"),
    *(check(name, condition) for name, condition in status.CHECKS.items()),
    one_of("unique_mode_known", "unique_mode", *status.UNIQUE_MODES),
    # Measured as the text of jsonb, which can be longer than the handler's JSON: 1e300 is written with all its digits.
    check("result_bounded", f"octet_length(result::text) <= {KEPT_BYTES}"),
    check("saved_bounded", f"octet_length((progress -> 'saved')::text) <= {KEPT_BYTES}"),
    check("attempts_bounded", "attempts BETWEEN 0 AND max_attempts AND max_attempts > 0"),
    info=storage(
        # More than half of each page stays free, so that a claim or a heartbeat finds space for the row's next version
        # on the same page; a claimed row is longer than a queued one.
        fillfactor=40,
        # A sweep reads past the dead versions in job_runs_live until a vacuum removes them.  With the server's default,
        # a fifth of the table, there would be two million of them among ten million runs.
        autovacuum_vacuum_scale_factor=0.01,
        autovacuum_vacuum_threshold=1000,
        # The statistics of due runs change faster than the table grows.
        autovacuum_analyze_scale_factor=0.05,
        # Truncating the file would take a lock that blocks claims.
        vacuum_truncate="false",
    ),
)

# No index and no predicate below contains a column that a claim or a heartbeat changes (status, attempts, lease_no,
# locked_by, locked_until, started_at, updated_at, ...), so that both stay heap-only updates that touch no index.

# For claims: live rows, lane (queue and priority) by lane, the longest due first.
Index(
    "job_runs_live",
    job_runs.c.queue,
    job_runs.c.priority,
    job_runs.c.run_at,
    job_runs.c.id,
    postgresql_where=text("finished_at IS NULL"),
)
# Suspects, lane by lane, in the same order.  There are few.
Index(
    "job_runs_suspect",
    job_runs.c.queue,
    job_runs.c.priority,
    job_runs.c.run_at,
    job_runs.c.id,
    postgresql_where=text("finished_at IS NULL AND suspect > 0"),
)
# One run for each natural key.
Index(
    "job_runs_held_key",
    job_runs.c.held_key,
    job_runs.c.job_type,
    unique=True,
    postgresql_where=text("held_key IS NOT NULL"),
)
# One run for each request, however often it is repeated.
Index(
    "job_runs_idempotency_key",
    job_runs.c.idempotency_key,
    job_runs.c.key_owner,
    unique=True,
    postgresql_where=text("idempotency_key IS NOT NULL"),
)
# One run for each nominal time; also finds a definition's runs.
Index(
    "job_runs_occurrence",
    job_runs.c.definition_id,
    job_runs.c.scheduled_for,
    unique=True,
    postgresql_where=text("definition_id IS NOT NULL"),
)
# To find an unfinished run of a definition, for schedules that skip overlaps.
Index(
    "job_runs_definition_live",
    job_runs.c.definition_id,
    postgresql_where=text("definition_id IS NOT NULL AND finished_at IS NULL"),
)
# For lists of runs that have failed at least once: they are few among millions, and the most often listed.
Index("job_runs_failed", job_runs.c.created_at, job_runs.c.id, postgresql_where=text("failed_at IS NOT NULL"))
# For lists of one definition's runs.
Index(
    "job_runs_definition",
    job_runs.c.definition_id,
    job_runs.c.created_at,
    job_runs.c.id,
    postgresql_where=text("definition_id IS NOT NULL"),
)

# Every attempt that did not succeed; a success is in the run's own row.
job_attempts = Table(
    "job_attempts",
    metadata,
    Column("run_id", BigInteger, ForeignKey("rowcall.job_runs.id", ondelete="CASCADE"), primary_key=True),
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
    info=storage(autovacuum_vacuum_scale_factor=0.05, vacuum_truncate="false"),
)
# To count recent failed attempts, for monitoring.
Index(
    "job_attempts_failed",
    job_attempts.c.ended_at,
    postgresql_where=text(f"outcome IN {status.sql_list(status.FAILURES)}"),
)

# Every decided nominal time of a schedule, even without a run; the primary key prevents two ticks from enqueuing a
# nominal time twice.
schedule_occurrences = Table(
    "schedule_occurrences",
    metadata,
    Column("definition_id", BigInteger, ForeignKey("rowcall.job_definitions.id", ondelete="CASCADE"), primary_key=True),
    Column("nominal_at", moment("").type, primary_key=True),
    Column("outcome", Text, nullable=False),
    Column("reason", Text),
    Column("revision", Integer, nullable=False),
    Column("run_id", BigInteger),
    moment("created_at", default=True),
    one_of("outcome_known", "outcome", "enqueued", "skipped", "missed"),
    check("run_iff_enqueued", "(outcome = 'enqueued') = (run_id IS NOT NULL)"),
)

# The one row that ticks update, at most every ten seconds; it shows whether cron has stopped.
schedule_ticks = Table(
    "schedule_ticks",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False, server_default=text("1")),
    moment("ticked_at", default=True),
    Column("worker", Text),
    check("only_one", "id = 1"),
    # Updated every ten seconds.
    info=storage(fillfactor=50),
)
