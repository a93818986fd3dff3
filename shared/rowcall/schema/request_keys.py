"""The table of idempotency keys that are not stored only on a run."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text

from rowcall.schema.columns import metadata, moment, storage

# The keys of requests that were answered with the run that already held their natural key; and the key of every run
# whose natural key is not held forever, so that the primary key decides between two such requests.  The key of any
# other run is stored only on the run.  run_id has no foreign key, which would lock the run's row for each request; a
# trigger deletes the keys when their run is deleted.
request_keys = Table(
    "request_keys",
    metadata,
    Column("idempotency_key", Text, primary_key=True),
    Column("key_owner", Text, primary_key=True),
    Column("run_id", BigInteger, nullable=False),
    Column("request_fingerprint", Text, nullable=False),
    moment("created_at", default=True),
    # Pruning deletes many rows at a time, and truncating the file would take a lock that blocks writes.
    info=storage(autovacuum_vacuum_scale_factor=0.05, vacuum_truncate="false"),
)
# To delete them with their run.
Index("request_keys_run", request_keys.c.run_id)
