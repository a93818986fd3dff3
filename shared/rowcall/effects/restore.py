"""After a restore from a backup: effects that may have happened in the lost hours, which the ledger does not know.

A run that was waiting in the backup may have ended since, and its email may have been sent.  Its effects are ambiguous
if nobody recognizes a repetition, so an operator resolves them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from rowcall.access.audit import Operator, record
from rowcall.base.database import Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.effects.kinds import TABLES, Kind, Policy, Table

SUBJECT: Final = "database"

LOST: Final = "the database was restored from a backup, and this may have happened in the hours that were lost"

# The id that was sent then is lost, so an operator must not look for the current one.
LOST_EMAIL: Final = (
    f"{LOST}, with a Message-ID that is lost too: look in the mail log for its recipient, its subject and the time"
)

# An email that is begun or unknown in the backup may have been resolved and sent again since.
SINCE_EMAIL: Final = (
    f"{LOST}, perhaps with another Message-ID: if the mail log does not have this one, look for its recipient, its"
    " subject and the time"
)

# Table -> the statement that notes the restore in the refusal of its unknown effects.  Uses the index {table}_open.  A
# later restore adds nothing.
DOUBT = {
    table.name: f"""
UPDATE rowcall.{table.name} SET refusal = concat_ws('; ', refusal, %(doubt)s::text), updated_at = now()
WHERE state = 'unknown' AND position(%(lost)s IN coalesce(refusal, '')) = 0
"""
    for table in TABLES
}

# A run of the backup that is repeated enqueues its children again, as new runs, whose effects may have happened too.  A
# chain of runs that never ends must not stay in doubt forever, so only this many generations count.
GENERATIONS = 3

# Index audit_log_subject.  Hardly any database was restored, so that the next statement is hardly ever needed.
WAS_RESTORED = f"EXISTS (SELECT FROM rowcall.audit_log WHERE subject = '{SUBJECT}' AND subject_id IS NULL)"

# Primary key, and audit_log_subject.  A run's effects happen after the run was created, or, for an occurrence that the
# restored schedule decides again, after its nominal time.  Within the kind's horizon, the provider still recognizes
# them.  A resolution recorded after the restore takes precedence.
MAY_HAVE_HAPPENED = rf"""
WITH RECURSIVE line AS (
    SELECT created_at, scheduled_for, created_by, 0 AS generation FROM rowcall.job_runs WHERE id = %(run_id)s
    UNION ALL
    SELECT parent.created_at, parent.scheduled_for, parent.created_by, line.generation + 1
    FROM line JOIN rowcall.job_runs AS parent
        ON parent.id = CASE WHEN length(split_part(line.created_by, ' ', 2)) < 19
            THEN substring(line.created_by FROM '^run ([0-9]+)(?: \(|$)')::bigint END
    WHERE line.generation < {GENERATIONS}
), fact AS (
    SELECT min(least(created_at, scheduled_for)) AS at FROM line
), restored AS (
    SELECT at FROM rowcall.audit_log
    WHERE subject = '{SUBJECT}' AND subject_id IS NULL ORDER BY id DESC LIMIT 1
)
SELECT EXISTS (
    SELECT FROM fact CROSS JOIN restored
    WHERE fact.at < restored.at AND fact.at < now() - %(horizon)s * interval '1 second'
        AND coalesce(%(updated_at)s::timestamptz < restored.at, true)
)
"""

UNFINISHED = """
SELECT count(*) AS runs, count(*) FILTER (WHERE run_at <= now()) AS due FROM rowcall.job_runs WHERE finished_at IS NULL
"""


def restored(connection: Connection, operator: Operator) -> Row:
    """Record that the database was restored; return how many runs of the backup have not finished."""
    for table in TABLES:
        fetch_all(connection, DOUBT[table.name], {"doubt": since(table), "lost": LOST})
    record(connection, operator.who, "restore", SUBJECT, None, None, None, operator.request_id)
    counts = fetch_one(connection, UNFINISHED)
    assert counts is not None
    return counts


def lost(kind: Kind) -> str:
    """Return why an effect of this kind is unknown, if it may have happened in the lost hours."""
    return LOST_EMAIL if "message_id" in kind.table.learned else LOST


def since(table: Table) -> str:
    """Return why an effect of this table is unknown, if the backup shows that an attempt began it."""
    return SINCE_EMAIL if "message_id" in table.learned else LOST


def may_have_happened(
    connection: Connection, kind: Kind, run_id: int, horizon: float | None, updated_at: datetime | None = None
) -> bool:
    """Return whether this run's effect may have happened in the lost hours, and so must not be repeated.

    `updated_at` is when the ledger's row of the effect last changed, if there is one.
    """
    if kind.policy not in (Policy.AT_MOST_ONCE, Policy.PROVIDER_KEY):
        return False
    forgotten = horizon or 0.0 if kind.policy is Policy.PROVIDER_KEY else 0.0
    values = {"run_id": run_id, "horizon": forgotten, "updated_at": updated_at}
    happened: bool = fetch_value(connection, MAY_HAVE_HAPPENED, values)
    return happened
