"""The table of the failed attempts, counted by minute."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from rowcall.schema.columns import metadata, moment, storage

# One worker at a time counts, some seconds after the attempts ended, so that no attempt waits for a row of this table.
# It contains no text of an error: a hash tells errors apart, and the example's attempt has the text until it is erased.
failure_counts = Table(
    "failure_counts",
    metadata,
    Column("minute", moment("").type, primary_key=True),
    Column("job_type", Text, primary_key=True),
    Column("queue", Text, primary_key=True),
    # Empty, like error_key, for the errors beyond those that a minute tells apart.
    Column("error_type", Text, primary_key=True),
    Column("error_key", Text, primary_key=True),
    Column("failures", BigInteger, nullable=False),
    moment("last_at", nullable=False),
    # The newest example.  No foreign key: counts outlive the runs.
    Column("run_id", BigInteger, nullable=False),
    Column("lease_no", Integer, nullable=False),
    # Pruning deletes many rows at a time, and truncating the file would take a lock that blocks the counting.
    info=storage(autovacuum_vacuum_scale_factor=0.05, vacuum_truncate="false"),
)
