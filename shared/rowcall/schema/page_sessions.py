"""The table of sessions on the operator's page."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, LargeBinary, Table

from rowcall.schema.columns import metadata, moment

# A one-time link is a row too, which signing in with it deletes.  key_id has no foreign key, because recording the use
# of a key updates its row.
page_sessions = Table(
    "page_sessions",
    metadata,
    Column("token_sha256", LargeBinary, primary_key=True),
    Column("key_id", BigInteger, nullable=False),
    Column("is_link", Boolean, nullable=False),
    moment("created_at", default=True),
    moment("expires_at", nullable=False),
)
