"""What housekeeping tests share: runs that ended long ago, and walks in the test's own transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rowcall.base.database import Connection, PgConnection, Row, fetch_all, fetch_value
from rowcall.job_types import load_catalogue
from rowcall.queue.retention.walk import PruneOptions, expire_keys, prune_runs
from rowcall.status import Status
from tests.support.rows import run_in

TYPES = load_catalogue(None)


def ended(connection: Connection, status: Status, ago: str, **columns: str) -> Row:
    """A run that was asked for and ended in this status that long ago."""
    moment = f"now() - interval '{ago}'"
    return run_in(connection, status, **dict.fromkeys(("created_at", "finished_at", "updated_at"), moment), **columns)


class Rehearsal:
    """Steps that are all of one transaction, which the test rolls back."""

    def __init__(self, connection: PgConnection) -> None:
        self._connection = connection
        self.open = False
        self.saved: list[Any] = []

    @contextmanager
    def step(self) -> Iterator[PgConnection]:
        """A part of the transaction."""
        self.open = True
        yield self._connection
        self.open = False

    def save(self, connection: PgConnection, what: Any) -> None:
        """As a run would have it back."""
        assert connection is self._connection
        self.saved.append(json.loads(json.dumps(what)))


def prune(connection: PgConnection, **policy: Any) -> dict[str, int]:
    """What prune_runs counts, with this policy."""
    *_, last = prune_runs(TYPES["prune_runs"].checked(policy), PruneOptions(Rehearsal(connection)))
    return dict(last.counts)


def expire(connection: PgConnection, **policy: Any) -> int:
    """How many rows expire_keys deletes, with this policy."""
    *_, last = expire_keys(TYPES["expire_keys"].checked(policy), PruneOptions(Rehearsal(connection)))
    return last.counts["deleted"]


def left(connection: Connection) -> list[int]:
    """The ids of all runs."""
    return [row["id"] for row in fetch_all(connection, "SELECT id FROM rowcall.job_runs ORDER BY id")]


OLD_ONES = ("400 days", "399 days", "91 days", "90 days", "1 day")


def occurrences(connection: PgConnection, *agos: str, name: str = "nightly") -> int:
    """A definition with occurrences that were skipped so long ago."""
    definition_id: int = fetch_value(
        connection,
        "INSERT INTO rowcall.job_definitions (name, job_type) VALUES (%(name)s, 'noop') RETURNING id",
        {"name": name},
    )
    fetch_all(
        connection,
        "INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, revision)"
        " SELECT %(id)s, now() - ago::interval, 'skipped', 1 FROM unnest(%(agos)s::text[]) AS ago",
        {"id": definition_id, "agos": list(agos)},
    )
    return definition_id


def occurrences_left(connection: PgConnection, definition_id: int) -> list[int]:
    """How many days ago each of those was that are left."""
    rows = fetch_all(
        connection,
        "SELECT extract(day FROM now() - nominal_at)::integer AS days FROM rowcall.schedule_occurrences"
        " WHERE definition_id = %(id)s ORDER BY 1",
        {"id": definition_id},
    )
    return [row["days"] for row in rows]
