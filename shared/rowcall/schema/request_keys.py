"""The table of idempotency keys that belong to runs which another request has enqueued."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text

from rowcall.schema.columns import metadata, moment, storage

# The keys of requests that got the run that holds their natural key; and the key of every run whose natural key is not
# held for ever, so that the primary key decides between two such requests.  The key of any other run is only on the
# run.  run_id has no foreign key, which would lock the run's row for each request; a trigger deletes the keys when
# their run is deleted.
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
