"""The table of incidents: the periods in which an alert was true."""

from __future__ import annotations

from sqlalchemy import Column, Index, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

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
    # When the alert was last true; NULL for a test that no worker has told of yet.
    moment("seen_at"),
    moment("ended_at"),
    # One check after another updates the open incidents.
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
