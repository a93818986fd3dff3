"""The tables of the operator's page: its sessions, and the lists of runs that operators have named."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, LargeBinary, Table, Text

from rowcall.schema.columns import metadata, moment

# A one-time link is a row too, which is deleted when somebody signs in with it.  key_id has no foreign key, because
# recording the use of a key updates the key's row.
page_sessions = Table(
    "page_sessions",
    metadata,
    Column("token_sha256", LargeBinary, primary_key=True),
    Column("key_id", BigInteger, nullable=False),
    Column("is_link", Boolean, nullable=False),
    moment("created_at", default=True),
    moment("expires_at", nullable=False),
)

# All operators share them.
page_views = Table(
    "page_views",
    metadata,
    Column("name", Text, primary_key=True),
    Column("query", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    moment("created_at", default=True),
)
