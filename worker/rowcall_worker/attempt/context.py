"""What a handler is given: its run, and nothing that could get round the lease."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from rowcall.base import logs
from rowcall.base.clock import elapsed
from rowcall.base.database import PgConnection, Row, committed
from rowcall.base.errors import CancelRequested, LeaseLost
from rowcall.base.jsonb import stored
from rowcall.effects import Effect, Lease, effects_of, hold, key_of, kind_of, record
from rowcall.queue import Done, note_progress, saved, succeed
from rowcall_worker.attempt.effects import Ledger, Perform
from rowcall_worker.gateways import Gateways
from rowcall_worker.runtime.in_flight import InFlightRun

Connect = Callable[[], PgConnection]


@dataclass(frozen=True)
class Resources:
    """What all runs of a worker have in common; `horizon` is how many seconds the payment provider remembers keys.

    `connect` makes connections for a handler's own statements among ours, `connect_internal` for ours alone.
    """

    worker: str
    connect: Connect
    connect_internal: Connect
    gateways: Gateways
    horizon: float


class Run:
    """One attempt of one run, as its handler sees it."""

    __slots__ = (
        "_held",
        "_means",
        "attempt",
        "finished",
        "id",
        "job_type",
        "lease_no",
        "max_attempts",
        "payload",
        "scheduled_for",
    )

    def __init__(self, held: InFlightRun, means: Resources) -> None:
        claimed = held.claimed
        self.id: int = claimed.run_id
        self.lease_no: int = claimed.lease_no
        self.job_type: str = claimed.job_type
        self.attempt: int = claimed.attempt
        self.max_attempts: int = claimed.max_attempts
        self.payload: dict[str, Any] = claimed.payload
        self.scheduled_for: datetime | None = claimed.scheduled_for
        self.finished = False
        self._held = held
        self._means = means

    @property
    def gateways(self) -> Gateways:
        """The outside: mail, webhooks, payments and files; to be called inside `effect`, so that it happens once."""
        return self._means.gateways

    @property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """A logger whose lines carry the run's id and lease."""
        return logs.log()

    def check(self) -> None:
        """Go on only if that still counts; a handler that takes long calls this between its steps.

        Raises CancelRequested when an operator asked for it, and LeaseLost when the run is no longer this worker's.
        """
        self._still_held()
        if self._held.cancel_requested:
            raise CancelRequested(self.id)

    def _still_held(self) -> None:
        if self._held.lost or elapsed() > self._held.deadline:
            raise LeaseLost(self.id, self.lease_no)

    def effect(
        self,
        kind: str,
        *,
        key: str | Mapping[str, Any],
        content: Mapping[str, Any],
        perform: Perform,
        details: Mapping[str, Any] | None = None,
        policy: str | None = None,
    ) -> Effect:
        """Do something to the world, once: `perform` is called with the effect unless it has happened already.

        `key` is the business fact that may happen once; a kind whose key has several columns takes a mapping of them.
        `content` tells this effect from another one that was given the same key by mistake: facts such as the template
        and whom it is for, and nothing that may differ when the run is tried again; `details` are for people to see in
        the table's own columns.  `policy` is the word for another one than the kind's.  `perform` answers with the
        provider's reference.
        """
        known = kind_of(kind)
        ledger = Ledger(self._lease, self._internal_transaction, self._still_held, self._means.horizon)
        return ledger.once(known, key_of(known, key), content, details, perform, policy)

    def record(
        self,
        connection: PgConnection,
        kind: str,
        *,
        key: str | Mapping[str, Any],
        content: Mapping[str, Any],
        reference: str | None = None,
    ) -> bool:
        """Write an effect down that is nothing but the rows of this transaction; False when it was there already."""
        known = kind_of(kind)
        return record(connection, self._lease, known, key_of(known, key), content, reference)

    def effects(self, connection: PgConnection) -> list[Row]:
        """What this run has begun so far, in earlier attempts too; each with its kind, key and state."""
        return effects_of(connection, self.id)

    def progress(self, share: float, note: str = "") -> None:
        """Tell how far the work is, from 0 to 1; written with the next heartbeat tick, at no cost to the handler."""
        self._held.progress = stored({"share": min(max(float(share), 0.0), 1.0), "note": note[:200]})

    @contextmanager
    def step(self) -> Iterator[PgConnection]:
        """A short transaction of the handler's own, before the run's end: committed only if the lease is still held."""
        self.check()
        with self._own_transaction() as connection:
            yield connection
            hold(connection, self._lease)

    def saved(self) -> Any:
        """What an earlier attempt gave to `save`; None on the first."""
        with self._internal_transaction() as connection:
            return saved(connection, self.id)

    def save(self, connection: PgConnection, what: Any) -> None:
        """Keep something for the next attempt to go on from, together with the work of this step."""
        key = self.id, self.lease_no
        if not note_progress(connection, self._means.worker, key, stored({"saved": what})):
            raise LeaseLost(*key)

    @contextmanager
    def transaction(self, result: Any = None) -> Iterator[PgConnection]:
        """The handler's own database work and the run's success, committed together or not at all.

        The handler ends with this block: `result` becomes the run's, as it is at the block's end; what the handler
        returns does not.  If the lease was lost, everything in the block is rolled back and LeaseLost is raised.
        """
        self.check()
        with self._own_transaction() as connection:
            yield connection
            text = None if result is None else stored(result)
            if not succeed(connection, self._means.worker, [Done(self.id, self.lease_no, text)]):
                raise LeaseLost(self.id, self.lease_no)
        self.finished = True

    @property
    def _lease(self) -> Lease:
        return Lease(self._means.worker, self.id, self.lease_no)

    def _own_transaction(self) -> AbstractContextManager[PgConnection]:
        return _transaction(self._means.connect)

    def _internal_transaction(self) -> AbstractContextManager[PgConnection]:
        return _transaction(self._means.connect_internal)


@contextmanager
def _transaction(connect: Connect) -> Iterator[PgConnection]:
    with closing(connect()) as connection, committed(connection):
        yield connection
