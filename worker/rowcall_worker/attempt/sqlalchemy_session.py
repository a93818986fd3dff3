"""A handler's transaction as SQLAlchemy's connection or session, so that an app's models commit together with the run.

SQLAlchemy is loaded here, and this module only when a handler asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import sqlalchemy
import sqlalchemy.event
from sqlalchemy import Connection
from sqlalchemy.orm import Session, SessionTransaction

from rowcall.base.errors import Permanent
from rowcall.base.watched import WatchedConnection

Wanted = TypeVar("Wanted")

# As many flushes as SQLAlchemy's own commit makes before it gives up on hooks that keep adding changes.
FLUSHES_MOST = 100

# What `as_` may be.
SESSIONS = "pass sqlalchemy.orm.Session, a subclass or a sessionmaker"


@contextmanager
def connected(connection: WatchedConnection) -> Iterator[Connection]:
    """Wrap one of our connections for SQLAlchemy, which begins and ends no transaction on it."""
    if connection.engine is None:
        _prepare(connection)
    assert isinstance(connection.engine, sqlalchemy.Engine)
    # Types that SQLAlchemy reads in its own way must not change what psycopg2 returns in the next run.
    connection.string_types.update(connection.typecasters)
    held = connection.engine.connect()
    try:
        yield held
    finally:
        connection.string_types.clear()
        with suppress(Exception):  # our transaction has ended, so nothing can be lost
            held.close()


def _prepare(connection: WatchedConnection) -> None:
    """Let SQLAlchemy inspect the connection once, in a transaction that it rolls back."""
    connection.engine = sqlalchemy.create_engine(
        "postgresql+psycopg2://",
        creator=lambda: connection,
        # This pool never closes the connection.
        poolclass=sqlalchemy.StaticPool,
        pool_reset_on_return=None,
        hide_parameters=True,
        # Otherwise SQLAlchemy looks up a type that the app may not have, with operators that depend on search_path.
        use_native_hstore=False,
    )
    connection.engine.connect().close()
    connection.typecasters = dict(connection.string_types)


def _made(as_: Callable[..., Any], held: Connection) -> Session:
    """Return the session that `as_` makes; raise Permanent if it makes none."""
    try:
        session = as_(bind=held, join_transaction_mode="create_savepoint")
    except TypeError as error:
        raise Permanent(f"as_ cannot be called like the Session class ({error}): {SESSIONS}") from None
    if not isinstance(session, Session):
        raise Permanent(f"as_ made a {type(session).__name__}: {SESSIONS}")
    return session


@contextmanager
def session_on(held: Connection, as_: Callable[..., Wanted]) -> Iterator[Wanted]:
    """Yield the object that `as_` makes from the connection; a session is flushed at the end of the block."""
    if as_ is Connection:
        wanted: Any = held
        yield wanted
        return
    held.begin()
    # In a savepoint: a flush that fails rolls back the session's work, but not the transaction, which we end ourselves.
    session: Any = _made(as_, held)
    refusals = Refusals(session, held)
    try:
        yield session
        _flush(session)
    except BaseException:
        refusals.end()
        with suppress(Exception):  # what ended the block is the error to report
            session.close()
        raise
    session.expunge_all()  # so that its objects can be read after the block
    refusals.end()
    session.commit()  # releases the savepoint
    session.close()


def _flush(session: Session) -> None:
    """Send all that is pending, including what the app's own hooks add during a flush."""
    for _ in range(FLUSHES_MOST):
        session.flush()
        if not (session.new or session.deleted or any(map(session.is_modified, session.dirty))):
            return
    raise Permanent(
        f"the session still had changes after {FLUSHES_MOST} flushes: its event hooks may add new ones at each flush"
    )


class Refusals:
    """Keep a handler from ending the transaction through its session, and the session from using another connection.

    A rollback only undoes a savepoint.  Closing the session would roll back its work too, and the run would succeed
    without it.
    """

    def __init__(self, session: Session, held: Connection) -> None:
        self._held = held
        self._listeners: dict[str, Callable[..., None]] = {
            "after_begin": self._refuse_another_connection,
            "before_commit": self._refuse_commit,
            "after_rollback": self._note_rollback,
            "after_transaction_end": self._refuse_close,
        }
        self._session = session
        self._rolled_back = False
        for name, listener in self._listeners.items():
            sqlalchemy.event.listen(session, name, listener)

    def end(self) -> None:
        """Stop refusing, so that we can end the session."""
        for name, listener in self._listeners.items():
            sqlalchemy.event.remove(self._session, name, listener)

    def _refuse_another_connection(
        self, session: Session, transaction: SessionTransaction, connection: Connection
    ) -> None:
        if connection is not self._held:
            raise Permanent(
                "this session chooses its own database, as Flask-SQLAlchemy's sessions do, and would not write in the"
                " run's transaction: pass as_=sqlalchemy.orm.Session, which takes the same models"
            )

    def _refuse_commit(self, session: Session) -> None:
        if not session.in_nested_transaction():
            raise _refused("commit()", "`with session.begin():`", "; session.flush() sends what is pending")

    def _note_rollback(self, session: Session) -> None:
        # A nested rollback does not undo the rest of the session's work.
        if not session.in_nested_transaction():
            self._rolled_back = True

    def _refuse_close(self, session: Session, transaction: SessionTransaction) -> None:
        if transaction.parent is not None:
            return
        if not self._rolled_back:
            raise _refused("close()", "`with session:`")
        self._rolled_back = False


def _refused(what: str, block: str, instead: str = "") -> Permanent:
    return Permanent(
        f"the handler called {what} within run.step() or run.transaction(), which commits at the end of the block:"
        f" remove the call, and {block} if you use it{instead}"
    )
