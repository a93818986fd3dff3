"""Effects: how a handler performs an external side effect once, though its run may have many attempts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import psycopg2

from rowcall import effects
from rowcall.base import tracing
from rowcall.base.database import PgConnection
from rowcall.base.errors import (
    AmbiguousEffect,
    CommitUnconfirmed,
    DatabaseUnreachable,
    EffectBusy,
    EffectConflict,
    EffectInvalid,
    GatewayError,
    LeaseLost,
    OutcomeUnknown,
    Permanent,
    message_of,
)
from rowcall.base.logs import LogEvent, log
from rowcall.base.outages import is_outage, is_passing
from rowcall.effects import Decision, Effect, Kind, Policy
from rowcall.queue import Lease

# The result of `perform`: the provider's reference, alone or with values for the columns of the kind's table.
Answer = str | Mapping[str, Any] | None
Perform = Callable[[Effect], Answer]
Transaction = Callable[[], AbstractContextManager[PgConnection]]

# Why the run can be retried once the handler is fixed.
RECORDED = "; the effect has happened and is recorded, without a reference"

Recorded = TypeVar("Recorded")

# The pause between two tries; an outage may be long, and a lease lasts two minutes.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0


def perform_once(
    lease: Lease,
    transaction: Transaction,
    statement: Transaction,
    check_lease: Callable[[], None],
    kind: Kind,
    key: Mapping[str, Any],
    content: Mapping[str, Any],
    perform: Perform,
    *,
    details: Mapping[str, Any] | None = None,
    horizon: float,
) -> Effect:
    """Perform an effect unless it has already happened; return it as recorded, now or earlier.

    Each `transaction` is short, and none is open during the external call.  `statement` is one for a single statement.
    """
    attributes = {"rowcall.effect.kind": kind.name, "rowcall.effect.policy": str(kind.policy)}
    with tracing.span(f"effect {kind.name}", "CLIENT", attributes=attributes) as span:
        return _perform_once(
            lease,
            transaction,
            statement,
            check_lease,
            kind,
            key,
            content,
            perform,
            details=details,
            horizon=horizon,
            span=span,
        )


def _perform_once(
    lease: Lease,
    transaction: Transaction,
    statement: Transaction,
    check_lease: Callable[[], None],
    kind: Kind,
    key: Mapping[str, Any],
    content: Mapping[str, Any],
    perform: Perform,
    *,
    details: Mapping[str, Any] | None,
    horizon: float,
    span: tracing.Span,
) -> Effect:
    _check(kind, perform)
    asking = Asking(lease, kind, key, content, details, horizon)
    decision, effect = until_recorded(transaction, check_lease, asking.begin)
    span.note(performed=decision is Decision.PERFORM)
    if decision is Decision.DONE:
        return effect
    if decision is not Decision.PERFORM:
        raise _refusal(decision, effect)
    check_lease()
    try:
        answer = perform(effect)
    except Exception as error:
        # Any other error may have been raised before the effect happened, or after.
        words = f"perform raised {type(error).__name__}: {message_of(error)}"
        said = error if isinstance(error, GatewayError) else OutcomeUnknown(words)
        final = isinstance(error, Permanent)
        unknown = until_recorded(
            transaction, check_lease, lambda connection: effects.failed(connection, lease, effect, said, final)
        )
        if unknown and not final:
            raise _refusal(Decision.AMBIGUOUS, effect, str(said)) from error
        raise
    reference, learned, wrong = _reference_and_columns(kind, answer)
    try:
        recorded = until_recorded(
            transaction,
            check_lease,
            lambda connection: effects.applied(connection, lease, effect, reference, learned),
            statement,
        )
    except LeaseLost as lost:
        # The effect happened and is in no table: the operator needs the reference to find it.
        log().error(LogEvent.EFFECT_UNRECORDED, kind=kind.name, key=dict(effect.key), reference=reference)
        happened = f"it happened, with the reference {reference!r}, and could not be recorded before the lease ended"
        raise _refusal(Decision.AMBIGUOUS, effect, happened) from lost
    if wrong:
        raise EffectInvalid(wrong)
    return recorded


def _check(kind: Kind, perform: object) -> None:
    """Refuse an effect that no attempt can perform."""
    if kind.policy is Policy.WITH_THE_RUN:
        raise EffectInvalid(f"{kind.name} has the policy with_the_run: write it with run.record() in run.transaction()")
    if not callable(perform):
        raise EffectInvalid(f"perform of {kind.name} is {perform!r:.100} and must be a function that takes the effect")


def until_recorded(
    transaction: Transaction,
    check_lease: Callable[[], None],
    write: Callable[[PgConnection], Recorded],
    statement: Transaction | None = None,
) -> Recorded:
    """Write in a transaction; repeat this until the database confirms the commit or the lease is over.

    A write of one statement is tried as `statement` first, which costs one round trip instead of two.
    """
    pause, way = FIRST_PAUSE_SECONDS, statement or transaction
    while True:
        try:
            with way() as connection:
                return write(connection)
        except (psycopg2.Error, DatabaseUnreachable) as error:
            # The write may or may not have been committed; every write here can be repeated.
            if not (is_outage(error) or is_passing(error)):
                raise
            # A transaction can tell the warning of a trigger from that of a commit.
            at_once, way = way is statement and isinstance(error, CommitUnconfirmed), transaction
            if not at_once:
                check_lease()
                time.sleep(pause)  # nothing signals that the database is back
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


@dataclass
class Asking:
    """One request to the ledger, which is repeated if its commit is in doubt."""

    lease: Lease
    kind: Kind
    key: Mapping[str, Any]
    content: Mapping[str, Any]
    details: Mapping[str, Any] | None
    horizon: float
    allowed: Effect | None = None

    def begin(self, connection: PgConnection) -> tuple[Decision, Effect]:
        """Ask the ledger.  A repeated request may still perform the effect that the first one was allowed to."""
        decision, effect = effects.begin(
            connection,
            self.lease,
            self.kind,
            self.key,
            self.content,
            self.details,
            self.horizon,
            unperformed=self.allowed is not None,
        )
        if self.allowed is not None:
            effect = replace(effect, again=self.allowed.again)
        elif decision is Decision.PERFORM:
            self.allowed = effect
        return decision, effect


def _reference_and_columns(kind: Kind, answer: object) -> tuple[str | None, Mapping[str, Any], str]:
    """The reference, the columns of the table, and what is wrong with the result of `perform`.

    The effect has happened, so it is recorded before a wrong result is reported.
    """
    learned = dict(answer) if isinstance(answer, Mapping) else {"reference": answer}
    reference = learned.pop("reference", None)
    kept = {name: learned.pop(name) for name in kind.table.learned if name in learned}
    if learned:
        return None, kept, f"{kind.name} has no column {min(map(str, learned))!r} for what perform returned{RECORDED}"
    if reference is None or isinstance(reference, str):
        return reference, kept, ""
    wrong = f"a reference of the type {type(reference).__name__}"
    return (
        None,
        kept,
        f"perform must return the provider's reference as a string, or None; it returned {wrong}{RECORDED}",
    )


def _refusal(decision: Decision, effect: Effect, reason: str = "") -> Exception:
    """Why an effect is not performed."""
    named = f"{effect.kind.name} {'/'.join(str(part) for part in effect.key.values())!r}"
    if decision is Decision.BUSY:
        return EffectBusy(f"run {effect.run_id} is performing {named} now")
    if decision is Decision.CONFLICT:
        return EffectConflict(
            f"{named} belongs to run {effect.run_id}, which requested it with different content: this run needs"
            " another key"
        )
    because = (
        reason
        or effect.refusal
        or f"it was begun at {effect.intent_at:%Y-%m-%d %H:%M:%S %Z} and its outcome was never recorded"
    )
    return AmbiguousEffect(
        f"{named} may have happened: {because}; find out, record it with"
        f" `rowcall effects resolve {effect.kind.name} {effect.id} --happened` or `--did-not-happen`, and retry the run"
    )
