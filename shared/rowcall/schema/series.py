"""The tables of the series for charts: counts by minute, and the versions of workers."""

from __future__ import annotations

from sqlalchemy import Column, Integer, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from rowcall.schema.columns import metadata, moment, storage

# Each worker has its own rows, so that no worker waits for another, and writes them with its heartbeat.
run_counts = Table(
    "run_counts",
    metadata,
    Column("minute", moment("").type, primary_key=True),
    Column("job_type", Text, primary_key=True),
    Column("worker", Text, primary_key=True),
    Column("succeeded", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("dead", Integer, nullable=False),
    Column("cancelled", Integer, nullable=False),
    Column("snoozed", Integer, nullable=False),
    Column("released", Integer, nullable=False),
    # Histograms, with the buckets of rowcall.queue.series.histogram.
    Column("waiting", ARRAY(Integer), nullable=False),
    Column("running", ARRAY(Integer), nullable=False),
    # Pruning deletes many rows at a time, and truncating the file would take a lock that blocks the writes.
    info=storage(autovacuum_vacuum_scale_factor=0.05, vacuum_truncate="false"),
)

worker_versions = Table(
    "worker_versions",
    metadata,
    Column("version", Text, primary_key=True),
    moment("first_seen_at", default=True),
)
