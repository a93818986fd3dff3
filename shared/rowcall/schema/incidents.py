"""The tables of alerts: when they were checked, when they were active, and the last pings to external services."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from rowcall.schema.columns import id_column, metadata, moment, storage

incidents = Table(
    "incidents",
    metadata,
    id_column(),
    Column("alert", Text, nullable=False),
    # What it is about, such as a job type; empty if there is only one.
    Column("subject", Text, nullable=False),
    # Numbers and ids, without the texts of errors, which belong to the runs and are erased with them.
    Column("details", JSONB, nullable=False),
    moment("opened_at", default=True),
    # When the alert was last found active; NULL for a test that no worker has found yet.
    moment("seen_at"),
    moment("ended_at"),
    # Every check updates the open incidents.
    info=storage(fillfactor=50, vacuum_truncate="false"),
)

# One open incident for each subject of an alert.
Index(
    "incidents_open",
    incidents.c.alert,
    incidents.c.subject,
    unique=True,
    postgresql_where=text("ended_at IS NULL"),
)

alert_checks = Table(
    "alert_checks",
    metadata,
    # The ROWCALL_APP whose workers check; empty without one.
    Column("app", Text, primary_key=True),
    moment("checked_at", nullable=False),
    # The job types with receivers of their own (on_dead) in this app.
    Column("own_types", ARRAY(Text), nullable=False),
    info=storage(fillfactor=50),
)

pings = Table(
    "pings",
    metadata,
    # 0 for the dead man's switch.  No foreign key: a row whose definition no longer exists does no harm.
    Column("definition_id", BigInteger, primary_key=True, autoincrement=False),
    # Which run of the definition began or ended last: its id, for an end also lease_no and status.
    Column("begun", Text),
    Column("ended", Text),
    # For the switch only: when a ping was last enqueued.
    moment("asked_at"),
    # When a ping last finished, and its run.
    moment("finished_at"),
    Column("run_id", BigInteger),
    info=storage(fillfactor=50),
)
