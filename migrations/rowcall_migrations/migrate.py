"""Bring a database to a revision: one migrator at a time, all steps or none, never blocking a busy table for long."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy.exc import OperationalError

from rowcall.base.database import engine
from rowcall.base.errors import DatabaseUnreachable, SchemaMismatch
from rowcall.schema.revision import REVISION, mismatch, revision_of

# Any number would do, as long as all migrators use the same: "rowcall" on a telephone's keys.
ADVISORY_LOCK = 7692255

ATTEMPTS = 10
LOCK_NOT_AVAILABLE = "55P03"


@dataclass(frozen=True)
class Migrated:
    """What a migration did: from which revision (None: from nothing) to which, by which steps."""

    before: str | None
    after: str | None
    steps: tuple[str, ...]


def migrate(url: str, lock_timeout: float, target: str = "head") -> Migrated:
    """Migrate to target (a revision, head, or base).  Waits for another migrator, then finds its work done."""
    pool = engine(url, pool_size=1)
    try:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with pool.begin() as connection:
                    return _migrate_in_transaction(connection, lock_timeout, target)
            except OperationalError as error:
                if getattr(error.orig, "pgcode", None) != LOCK_NOT_AVAILABLE:
                    raise
                # Giving way lets the queue behind the busy table move on before the next try.
                time.sleep(lock_timeout * attempt / ATTEMPTS)  # longer each time, while nothing is held
        raise DatabaseUnreachable(
            f"a table was busy for {ATTEMPTS} tries of {lock_timeout:g} seconds, and nothing was changed: end the long"
            " transactions (select pid, xact_start, query from pg_stat_activity order by xact_start), or raise"
            " ROWCALL_LOCK_TIMEOUT"
        )
    finally:
        pool.dispose()


def _migrate_in_transaction(connection: sqlalchemy.Connection, lock_timeout: float, target: str) -> Migrated:
    """One attempt: take the migrators' lock, look where the database is, go."""
    # Held to the end of the transaction, so that it holds through a transaction-mode pooler too.
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
    # Set only now: waiting for another migrator may take long, waiting for a busy table may not.
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(lock_timeout * 1000)}")
    before = revision_of(connection)
    config = _config(connection)
    goal = ScriptDirectory.from_config(config).get_current_head() if target == "head" else target
    if before is not None and before > REVISION:
        raise SchemaMismatch(str(mismatch(before)))
    connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS rowcall")
    try:
        _go(config, before, target, goal)
    except CommandError as error:
        raise SchemaMismatch(f"cannot migrate to {target!r}: {error}; `--to` takes a revision, head or base") from None
    after = revision_of(connection)
    return Migrated(before, after, _steps(config, before, after))


def _go(config: Config, before: str | None, target: str, goal: str | None) -> None:
    """Up or down, whichever leads there."""
    if goal == "base" or (before is not None and goal is not None and goal < before):
        command.downgrade(config, target)
    else:
        command.upgrade(config, target)


def _config(connection: sqlalchemy.Connection | None = None) -> Config:
    """Alembic's settings, in code: there is no alembic.ini to keep."""
    config = Config()
    # Alembic reads % in options as interpolation, and a folder's name may hold one.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _steps(config: Config, before: str | None, after: str | None) -> tuple[str, ...]:
    """The versions between two revisions, the oldest first: `0001 What it holds.`"""
    low, high = sorted((before or "", after or ""))
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    return tuple(f"{s.revision} {s.doc}" for s in reversed(list(scripts)) if low < s.revision <= high)
