"""Who calls: the owner of an API key, with the rights of the key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from rowcall.base.database import Row


class Limits(NamedTuple):
    """The job types and queues whose runs a key may enqueue and change; None means all."""

    job_types: Sequence[str] | None = None
    queues: Sequence[str] | None = None


UNLIMITED = Limits()


@dataclass(frozen=True)
class Caller:
    """The owner of a key, and the key's scopes; `unnoted` if no use has been recorded for a minute."""

    key_id: int
    name: str
    prefix: str
    scopes: frozenset[str]
    limits: Limits
    expires_at: datetime | None
    unnoted: bool

    @property
    def who(self) -> str:
        """Return the name for `created_by` and the audit log; names from the command line begin with `cli:`."""
        return f"api:{self.name} ({self.prefix})"


def caller_of(row: Row) -> Caller:
    """Return the owner of the key with this row."""
    scopes, limits = frozenset(row["scopes"]), Limits(row["job_types"], row["queues"])
    return Caller(row["id"], row["name"], row["prefix"], scopes, limits, row["expires_at"], row["unnoted"])
