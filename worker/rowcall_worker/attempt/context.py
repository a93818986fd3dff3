"""The argument of a handler: its run.  Every write through the run requires the lease."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from rowcall.base.clock import elapsed
from rowcall.base.database import Connection, PgConnection, Row
from rowcall.base.errors import CancelRequested, LeaseLost, Permanent
from rowcall.base.jsonb import stored
from rowcall.base.watched import answered
from rowcall.effects import Effect, Kind, effects_of, key_of, kind_of, record
from rowcall.queue import Done, renew, save, saved, succeed
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.effects import Perform, perform_once
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import kept_text
from rowcall_worker.attempt.run_log import RunLog
from rowcall_worker.gateways import Gateways

Wanted = TypeVar("Wanted")


@dataclass(frozen=True)
class Resources:
    """Resources that all runs of a worker share.

    `horizon` is how many seconds the payment provider remembers keys; `leases` maps each job type to the length of its
    lease in seconds.
    """

    connections: Connections
    gateways: Gateways
    horizon: float
    leases: Mapping[str, float]


STEP, TRANSACTION = "run.step()", "run.transaction()"

# The name of the block that this thread of a handler is in.
_BLOCK: ContextVar[str | None] = ContextVar("rowcall_block", default=None)


class Run:
    """One attempt of one run, as its handler sees it."""

    __slots__ = (
        "_in_flight",
        "_log",
        "_resources",
        "attempt",
        "finished",
        "id",
        "job_type",
        "lease_no",
        "max_attempts",
        "payload",
        "scheduled_for",
    )

    def __init__(self, in_flight: InFlightRun, resources: Resources) -> None:
        # The fields of Claimed, in their order.
        (self.id, self.lease_no, self.job_type, self.payload, self.attempt, self.max_attempts, self.scheduled_for) = (
            in_flight.claimed[:7]
        )
        self.finished = False
        self._in_flight = in_flight
        self._resources = resources
        self._log: RunLog | None = None

    @property
    def gateways(self) -> Gateways:
        """The gateways: mail, webhooks, payments and files.

        Call them inside `effect`, whose kind decides whether another attempt may repeat the call.
        """
        return self._resources.gateways

    @property
    def log(self) -> RunLog:
        """A standard logger whose lines are kept with the run, and carry its id and lease in the process's log."""
        if self._log is None:
            self._log = RunLog(self.id, self.lease_no, self._in_flight.begin_log())
        return self._log

    def check(self) -> None:
        """Raise an error if there is no point in continuing; a long handler calls this between its steps.

        Raises CancelRequested if an operator asked to cancel the run, LeaseLost if it no longer belongs to this worker.
        """
        self._check_lease()
        if self._in_flight.cancel_requested:
            raise CancelRequested(self.id)

    def _check_lease(self) -> None:
        if self.finished:
            raise Permanent("the run has succeeded with its run.transaction(): the handler must end with that block")
        if self._in_flight.lost or elapsed() > self._in_flight.deadline:
            raise LeaseLost(self.id, self.lease_no)

    def effect(
        self,
        kind: str | Kind,
        *,
        key: str | Mapping[str, Any],
        content: Mapping[str, Any],
        perform: Perform,
        details: Mapping[str, Any] | None = None,
    ) -> Effect:
        """Perform an external side effect once: `perform` is called with the effect, unless it has happened already.

        `key` identifies what may happen only once; it is a mapping if the kind's key has several columns.
        `content` identifies the effect together with the key, so that another effect with the same key is refused:
        facts such as the template and the recipient, and nothing that may differ when the run is retried.  `details`
        are stored in the table's own columns, for people.  `perform` returns the provider's reference.
        """
        known = kind_of(kind)
        return perform_once(
            self._in_flight.lease,
            self._resources.connections.internal_transaction,
            self._resources.connections.internal_statement,
            self._check_lease,
            known,
            key_of(known, key),
            content,
            perform,
            details=details,
            horizon=self._resources.horizon if known.horizon is None else known.horizon,
        )

    def record(
        self,
        connection: Connection,
        kind: str | Kind,
        *,
        key: str | Mapping[str, Any],
        content: Mapping[str, Any],
        reference: str | None = None,
    ) -> bool:
        """Record an effect that consists only of rows of this transaction; return False if it was recorded before."""
        known = kind_of(kind)
        return record(connection, self._in_flight.lease, known, key_of(known, key), content, reference)

    def effects(self, connection: Connection) -> list[Row]:
        """Return the effects of this run, including those of earlier attempts, each with its kind, key and state."""
        return effects_of(connection, self.id)

    def progress(self, share: float, note: str = "") -> None:
        """Report progress from 0 to 1; the heartbeat writes it, at no cost to the handler."""
        self._in_flight.progress = stored({"share": min(max(float(share), 0.0), 1.0), "note": note[:200]})

    @overload
    def step(self) -> AbstractContextManager[PgConnection]: ...
    @overload
    def step(self, *, as_: Callable[..., Wanted]) -> AbstractContextManager[Wanted]: ...
    @contextmanager
    def step(self, *, as_: Callable[..., Any] | None = None) -> Iterator[Any]:
        """Open a short transaction before the end of the run; it commits only if the lease holds.

        `as_` has the same meaning as in `transaction`.
        """
        asked_at, seconds = 0.0, self._resources.leases[self.job_type]

        def renewed(connection: PgConnection) -> bool:
            nonlocal asked_at
            asked_at = elapsed()
            return renew(connection, self._in_flight.lease, seconds)

        with self._block(as_, renewed, STEP) as held:
            yield held
        # Only now, because the lease is not renewed until the write is committed.
        self._in_flight.renewed(asked_at + seconds)

    def saved(self) -> Any:
        """Return the value that an earlier attempt passed to `save`; None in the first attempt."""
        with self._resources.connections.internal_transaction() as connection:
            return saved(connection, self.id)

    def save(self, connection: Connection, what: Any) -> None:
        """Save a value for the next attempt, in the transaction of this step."""
        if not save(connection, self._in_flight.lease, kept_text(what, "run.save was given")):
            raise LeaseLost(self.id, self.lease_no)

    @overload
    def transaction(self, result: Any = None) -> AbstractContextManager[PgConnection]: ...
    @overload
    def transaction(self, result: Any = None, *, as_: Callable[..., Wanted]) -> AbstractContextManager[Wanted]: ...
    @contextmanager
    def transaction(self, result: Any = None, *, as_: Callable[..., Any] | None = None) -> Iterator[Any]:
        """Commit the handler's own database work and the run's success together, or neither.

        The handler ends with this block.  The run's result is `result` as it is at the end of the block; the handler's
        return value is ignored.  If the lease was lost, everything in the block is rolled back and LeaseLost is raised.

        The block gets a psycopg2 connection.  With `as_=Session`, a subclass of it or a sessionmaker, the block gets an
        SQLAlchemy session; with `as_=sqlalchemy.Connection`, it gets an SQLAlchemy connection.
        """

        def succeeded(connection: PgConnection) -> bool:
            text = None if result is None else kept_text(result, "run.transaction was given")
            lease, lines = self._in_flight.lease, self._in_flight.unwritten
            return bool(succeed(connection, [Done(lease, text)], {lease: lines} if lines else None))

        with self._block(as_, succeeded, TRANSACTION) as held:
            yield held
        self.finished = True

    @contextmanager
    def _block(self, as_: Callable[..., Any] | None, end: Callable[[PgConnection], bool], name: str) -> Iterator[Any]:
        """Open a transaction of the handler; `end` writes what commits with it, and returns whether the lease holds."""
        self.check()
        with self._within(name), self._transaction(as_, end) as held:
            yield held

    @contextmanager
    def _within(self, name: str) -> Iterator[None]:
        """Refuse run.transaction() within another block, which would roll back although the run has succeeded."""
        outer = _BLOCK.get()
        if outer is not None and name == TRANSACTION:
            raise Permanent(f"the handler called {name} within {outer}: end that block first, or use its connection")
        opened = _BLOCK.set(name)
        try:
            yield
        finally:
            _BLOCK.reset(opened)

    @contextmanager
    def _transaction(self, as_: Callable[..., Any] | None, end: Callable[[PgConnection], bool]) -> Iterator[Any]:
        connections = self._resources.connections
        if as_ is None:
            with connections.transaction() as connection:
                yield connection
                self._end(connection, end)
            return
        with connections.sqlalchemy_transaction() as (connection, held):
            from rowcall_worker.attempt.sqlalchemy_session import session_on

            with session_on(held, as_) as wanted:
                yield wanted
            self._end(connection, end)

    def _end(self, connection: PgConnection, end: Callable[[PgConnection], bool]) -> None:
        with answered(connection):
            if not end(connection):
                raise LeaseLost(self.id, self.lease_no)
