"""A database whose roles have the rights of `rowcall migrate --grants`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from rowcall_migrations.grants import as_grants
from tests.schema.catalogue import asked
from tests.support.psql import psql

DUTIES = ("enqueue", "worker", "api")


@dataclass(frozen=True)
class Granted:
    """A database whose roles have the rights of the script."""

    url: str
    names: dict[str, str]

    @property
    def script(self) -> str:
        """Return what `rowcall migrate --grants` prints for these names."""
        return as_grants([f"{duty}={name}" for duty, name in self.names.items()])


@pytest.fixture
def granted(fresh_url: str) -> Iterator[Granted]:
    """Run the script, and yield the database; a suffix makes the roles' names unique on the server."""
    made = Granted(fresh_url, {duty: f"{duty}_{uuid.uuid4().hex[:8]}" for duty in DUTIES})
    psql(fresh_url, made.script)
    yield made
    names = ", ".join(made.names.values())
    asked(fresh_url, f"DROP OWNED BY {names}; DROP ROLE {names}")
