"""Helpers of housekeeping tests: runs that ended long ago, and walks in the test's transaction."""

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
    """Insert a run that was enqueued, and ended in this status, that long ago."""
    moment = f"now() - interval '{ago}'"
    return run_in(connection, status, **dict.fromkeys(("created_at", "finished_at", "updated_at"), moment), **columns)


class Rehearsal:
    """The steps of a walk, all in one transaction, which the test rolls back."""

    def __init__(self, connection: PgConnection) -> None:
        self._connection = connection
        self.open = False
        self.saved: list[Any] = []

    @contextmanager
    def step(self) -> Iterator[PgConnection]:
        """Yield the connection."""
        self.open = True
        yield self._connection
        self.open = False

    def save(self, connection: PgConnection, what: Any) -> None:
        """Keep what a run would get back."""
        assert connection is self._connection
        self.saved.append(json.loads(json.dumps(what)))


def prune(connection: PgConnection, **policy: Any) -> dict[str, int]:
    """Run prune_runs with this policy and return its counts."""
    *_, last = prune_runs(TYPES["prune_runs"].checked(policy), PruneOptions(Rehearsal(connection)))
    return dict(last.counts)


def expire(connection: PgConnection, **policy: Any) -> int:
    """Run expire_keys with this policy and return how many rows it deleted."""
    *_, last = expire_keys(TYPES["expire_keys"].checked(policy), PruneOptions(Rehearsal(connection)))
    return last.counts["deleted"]


def left(connection: Connection) -> list[int]:
    """Return the ids of all runs."""
    return [row["id"] for row in fetch_all(connection, "SELECT id FROM rowcall.job_runs ORDER BY id")]


OLD_ONES = ("400 days", "399 days", "91 days", "90 days", "1 day")


def occurrences(connection: PgConnection, *agos: str, name: str = "nightly") -> int:
    """Insert a definition with occurrences that were skipped that long ago, and return its id."""
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
    """Return how many days ago the remaining occurrences were."""
    rows = fetch_all(
        connection,
        "SELECT extract(day FROM now() - nominal_at)::integer AS days FROM rowcall.schedule_occurrences"
        " WHERE definition_id = %(id)s ORDER BY 1",
        {"id": definition_id},
    )
    return [row["days"] for row in rows]
