"""Roles of a test's own, as a managed PostgreSQL gives them: they may connect, and have what they are granted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from rowcall.base import database


@dataclass(frozen=True)
class Role:
    """A role, the URL by which it connects, and the one by which the database's owner does."""

    name: str
    url: str
    owners_url: str


@contextmanager
def role(owners_url: str, name: str, member_of: str | None = None) -> Iterator[Role]:
    """A role that can log in, for the block; roles belong to the whole server, so its name is its own."""
    parts = urlsplit(owners_url)
    unique = f"{name}_{uuid.uuid4().hex[:8]}"
    with database.transaction(owners_url) as connection:
        database.fetch_all(connection, f"CREATE ROLE {unique} LOGIN PASSWORD 'test'")
        if member_of:
            database.fetch_all(connection, f"GRANT {member_of} TO {unique}")
    yield Role(unique, parts._replace(netloc=f"{unique}:test@{parts.hostname}:{parts.port}").geturl(), owners_url)
    with database.transaction(owners_url) as connection:
        # Objects that it made, and rights it was given in this database, would keep it.
        database.fetch_all(connection, f"DROP OWNED BY {unique} CASCADE; DROP ROLE {unique}")
