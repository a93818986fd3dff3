"""What a server and worker processes use meanwhile: CPU time, bytes of WAL, commits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rowcall.base.database import PgConnection, fetch_all, fetch_value

BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
# As inserted, because a server that does not wait for the disk writes it later.
WAL = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


class Usage(NamedTuple):
    """Microseconds of CPU time, bytes of WAL, and commits."""

    server_us: float
    program_us: float
    wal: float
    commits: float

    def minus(self, other: Usage) -> Usage:
        """Return the difference."""
        return Usage(*(mine - others for mine, others in zip(self, other, strict=True)))

    def times(self, factor: float) -> Usage:
        """Return it multiplied."""
        return Usage(*(figure * factor for figure in self))


def usage(connection: PgConnection, programs: Iterable[int] = ()) -> Usage:
    """Return what the database's other sessions and these programs have used so far.

    A session reports its commits at most once a second, so only a difference over several seconds is exact.
    """
    backends = [row["pid"] for row in fetch_all(connection, BACKENDS)]
    return Usage(
        cpu_us(backends), cpu_us(programs), fetch_value(connection, WAL), float(fetch_value(connection, COMMITS))
    )


def cpu_us(pids: Iterable[int]) -> float:
    """Return the CPU time of these processes' threads, which the kernel counts in nanoseconds."""
    files = [file for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(file.read_text().split()[0]) for file in files) / 1000
