"""The workers' own rows: who works, what it serves, and when it was last heard of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.database import Connection, fetch_all

REGISTER = """
INSERT INTO workers (id, hostname, pid, version, queues, job_types, concurrency)
VALUES (%(id)s, %(hostname)s, %(pid)s, %(version)s, %(queues)s, %(job_types)s, %(concurrency)s)
"""

# Primary key; a heap-only update, as no index knows heartbeat_at.
ALIVE = "UPDATE workers SET heartbeat_at = now() WHERE id = %(worker)s"

STOPPED = "UPDATE workers SET stopped_at = now(), heartbeat_at = now() WHERE id = %(worker)s"

# A row for each start would grow for ever under a cron that wakes `once` each minute; a day is enough to look back.
FORGET = "DELETE FROM workers WHERE heartbeat_at < now() - interval '1 day'"


@dataclass(frozen=True)
class Worker:
    """What a worker says of itself.  No queues means all of them."""

    id: str
    hostname: str
    pid: int
    version: str
    queues: Sequence[str] | None
    job_types: Sequence[str]
    concurrency: int


def register(connection: Connection, worker: Worker) -> None:
    """A worker begins."""
    fetch_all(connection, FORGET)
    fetch_all(connection, REGISTER, vars(worker))


def alive(connection: Connection, worker: str) -> None:
    """A worker goes on."""
    fetch_all(connection, ALIVE, {"worker": worker})


def stopped(connection: Connection, worker: str) -> None:
    """A worker ends, and says so."""
    fetch_all(connection, STOPPED, {"worker": worker})
