"""Database roles for a test, like those of a managed PostgreSQL: they may connect and do what they are granted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from rowcall.base import database


@dataclass(frozen=True)
class Role:
    """A role, its URL, and the URL of the database's owner."""

    name: str
    url: str
    owners_url: str


@contextmanager
def role(owners_url: str, name: str, member_of: str | None = None) -> Iterator[Role]:
    """Yield a new role that can log in, and drop it after the block; the suffix makes its name unique on the server."""
    parts = urlsplit(owners_url)
    unique = f"{name}_{uuid.uuid4().hex[:8]}"
    with database.transaction(owners_url) as connection:
        database.fetch_all(connection, f"CREATE ROLE {unique} LOGIN PASSWORD 'test'")
        if member_of:
            database.fetch_all(connection, f"GRANT {member_of} TO {unique}")
    yield Role(unique, parts._replace(netloc=f"{unique}:test@{parts.hostname}:{parts.port}").geturl(), owners_url)
    with database.transaction(owners_url) as connection:
        # A role cannot be dropped while it owns objects or has rights in this database.
        database.fetch_all(connection, f"DROP OWNED BY {unique} CASCADE; DROP ROLE {unique}")
