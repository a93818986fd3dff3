"""Migrate a database to a revision: one migrator at a time, all steps or none, never blocking a busy table for long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy
from alembic import command
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from psycopg2.errors import DeadlockDetected, InsufficientPrivilege, LockNotAvailable
from sqlalchemy.exc import DBAPIError, OperationalError

from rowcall.base.database import drivers_error, unreachable
from rowcall.base.database.pool import open_pool
from rowcall.base.errors import DatabaseUnreachable, MigrationRefused, SchemaMismatch
from rowcall.base.watched import INTERNAL_NAMES
from rowcall.schema import REVISION, Schema, mismatch, schema_of
from rowcall_migrations.indexes import bring
from rowcall_migrations.refusals import look, refuse_to_begin, refuse_to_change, refuse_unusable
from rowcall_migrations.versions_folder import alembic_config, between, indexes_at, revisions, scripts

# An arbitrary number that all migrators share: "rowcall" on a telephone's keys.
ADVISORY_LOCK = 7692255

ATTEMPTS = 10

# How long to wait before trying again to take the migrators' lock.
LOCK_STEP_SECONDS = 0.2


@dataclass(frozen=True)
class Migrated:
    """What a migration did: the revisions before (None: nothing) and after, and its steps."""

    before: str | None
    after: str | None
    steps: tuple[str, ...]


def migrate(url: str, lock_timeout: float, target: str = "head") -> Migrated:
    """Migrate to target (a revision, head, or base); wait for a concurrent migration first."""
    folder = scripts()
    pool = open_pool(url, pool_size=2)
    try:
        with _one_migrator(pool, url):
            done = _in_turns(pool, folder, lock_timeout, target)
            # Only newer code knows a newer schema's indexes; without tables there are none.
            if done.after is None or done.after > REVISION:
                return done
            indexes = bring(pool, indexes_at(folder, done.after))
            return Migrated(done.before, done.after, (*done.steps, *(f"index {name}" for name in indexes)))
    finally:
        pool.dispose()


@contextmanager
def _one_migrator(pool: sqlalchemy.Engine, url: str) -> Iterator[None]:
    """Hold the migrators' lock, in a separate transaction.

    In a transaction, so that it also works through a pooler in transaction mode.  READ COMMITTED, so that it keeps no
    snapshot that the build of an index would wait for.
    """
    try:
        connected = pool.connect()
    except OperationalError as error:
        raise unreachable(url, drivers_error(error)) from None
    with connected.execution_options(isolation_level="READ COMMITTED") as connection, connection.begin():
        connection.exec_driver_sql(
            f"{INTERNAL_NAMES} SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0;"
            " SET LOCAL lock_timeout = 0"
        )
        while not connection.exec_driver_sql(f"SELECT pg_try_advisory_xact_lock({ADVISORY_LOCK})").scalar():
            time.sleep(LOCK_STEP_SECONDS)  # a statement that waited would hold a snapshot, which blocks index builds
        yield


def _in_turns(pool: sqlalchemy.Engine, folder: ScriptDirectory, lock_timeout: float, target: str) -> Migrated:
    """Run all steps in one transaction; retry it if a table is busy."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with pool.begin() as connection:
                # Limits the wait for a busy table, because other sessions queue behind this one.
                connection.exec_driver_sql(f"{INTERNAL_NAMES} SET LOCAL lock_timeout = {int(lock_timeout * 1000)}")
                return _migrate_in_transaction(connection, folder, target)
        except DBAPIError as error:
            if isinstance(error.orig, InsufficientPrivilege):
                raise MigrationRefused(
                    f"this role lacks a right: {' '.join(str(error.orig).split())}; nothing was changed: run `rowcall"
                    " migrate` as the owner of the tables, or ask the owner to run what `rowcall migrate --sql --from"
                    " REVISION` prints"
                ) from None
            if not isinstance(error.orig, LockNotAvailable | DeadlockDetected):
                raise
            # A pause lets the transactions behind the busy table continue; it grows with each further try.
            pause = lock_timeout * attempt / ATTEMPTS
            time.sleep(pause)  # no event says when the table is free; no lock is held meanwhile
    raise DatabaseUnreachable(
        f"a table was busy for {ATTEMPTS} tries of {lock_timeout:g} seconds, and nothing was changed: end the long"
        " transactions (select pid, xact_start, query from pg_stat_activity order by xact_start), or raise"
        " ROWCALL_LOCK_TIMEOUT"
    )


def _migrate_in_transaction(connection: sqlalchemy.Connection, folder: ScriptDirectory, target: str) -> Migrated:
    """Make one attempt: find the revision of the database, then migrate."""
    found = look(connection)
    refuse_unusable(found)
    schema = schema_of(connection)
    before = schema.revision if schema else None
    goal = folder.get_current_head() if target == "head" else None if target == "base" else target
    if before == goal or (schema and _is_newer(schema, target)):
        return Migrated(before, before, ())
    if goal not in (None, *revisions(folder)):
        raise SchemaMismatch(
            f"cannot migrate to {target!r}: there is no such revision; `--to` takes head, base or a revision:"
            f" {', '.join(revisions(folder))}"
        )
    if before is None:
        refuse_to_begin(found)
    refuse_to_change(found)
    if not found["has_schema"]:
        connection.exec_driver_sql("CREATE SCHEMA rowcall")
    try:
        if goal is None or (before is not None and goal < before):
            command.downgrade(alembic_config(connection), target)
        else:
            command.upgrade(alembic_config(connection), target)
    except CommandError as error:
        raise SchemaMismatch(f"cannot migrate to {target!r}: {error}; `--to` takes a revision, head or base") from None
    after = schema_of(connection)
    return _migrated(folder, before, after.revision if after else None)


def _is_newer(schema: Schema, target: str) -> bool:
    """Return whether the schema is newer than this code but still fits it; refuse what only the newer code could do."""
    if schema.revision <= REVISION:
        return False
    if problem := mismatch(schema):
        raise SchemaMismatch(problem)
    if target not in ("head", REVISION):
        raise SchemaMismatch(
            f"the database's schema is {schema.revision}, newer than this code ({REVISION}): migrate back with the"
            " newer version of Rowcall"
        )
    return True


def _migrated(folder: ScriptDirectory, before: str | None, after: str | None) -> Migrated:
    low, high = sorted((before, after), key=lambda revision: revision or "")
    return Migrated(before, after, tuple(f"{step.revision} {step.doc}" for step in between(folder, low, high)))
