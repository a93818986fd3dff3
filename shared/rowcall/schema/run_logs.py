"""The table of the lines that handlers log."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from rowcall.schema.columns import metadata, moment, one_of, storage

# Rows are only inserted and deleted.  The primary key is the only index: it finds a run's lines in their order.
# run_id has no foreign key, which would lock the run's row for each line; a trigger deletes the lines when their run is
# deleted, pruned or erased.
run_logs = Table(
    "run_logs",
    metadata,
    Column("run_id", BigInteger, primary_key=True, autoincrement=False),
    # The number of the line within the run.  Numbers that are missing are those of lines that were left out.
    Column("line_no", Integer, primary_key=True, autoincrement=False),
    Column("lease_no", Integer, nullable=False),
    # The number of the line within the lease, so that a repeated write adds nothing.
    Column("lease_line_no", Integer, nullable=False),
    moment("logged_at", nullable=False),
    Column("level", Text, nullable=False),
    Column("text", Text, nullable=False),
    one_of("level_known", "level", "debug", "info", "warning", "error"),
    # Pruning deletes many rows at a time, and truncating the file would take a lock that blocks writes.
    info=storage(autovacuum_vacuum_scale_factor=0.05, vacuum_truncate="false"),
)
