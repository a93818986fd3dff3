"""Effects: how a handler does something to the world once, though its run may be tried many times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import psycopg2

from rowcall import effects
from rowcall.base.database import PgConnection
from rowcall.base.errors import (
    AmbiguousEffect,
    DatabaseUnreachable,
    EffectBusy,
    EffectConflict,
    EffectInvalid,
    GatewayError,
    LeaseLost,
)
from rowcall.base.logs import LogEvent, log
from rowcall.base.outages import is_outage, is_passing
from rowcall.effects import Decision, Effect, Kind, Policy
from rowcall.queue import Lease

# What performing an effect answers: the provider's reference, or that and what the kind's table has columns for.
Answer = str | Mapping[str, Any] | None
Perform = Callable[[Effect], Answer]
Transaction = Callable[[], AbstractContextManager[PgConnection]]

Recorded = TypeVar("Recorded")

# Between two tries; an outage ends when it ends, and a lease lasts for two minutes.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0


def perform_once(
    lease: Lease,
    transaction: Transaction,
    check_lease: Callable[[], None],
    kind: Kind,
    key: Mapping[str, Any],
    content: Mapping[str, Any],
    perform: Perform,
    *,
    details: Mapping[str, Any] | None = None,
    policy: str | None = None,
    horizon: float,
) -> Effect:
    """Perform an effect unless it has happened; the effect as it was recorded, now or earlier.

    Each `transaction` is short and the attempt's own, and none is open while the world is touched.
    """
    chosen = effects.policy_of(policy or kind.policy)
    if Policy.WITH_THE_RUN in (chosen, kind.policy):
        raise EffectInvalid(f"{kind.name} is recorded in run.transaction(), together with the run's success")
    asking = Asking(lease, kind, key, content, details, chosen, horizon)
    decision, effect = until_recorded(transaction, check_lease, asking.begin)
    if decision is Decision.DONE:
        return effect
    if decision is not Decision.PERFORM:
        raise _refusal(decision, effect)
    check_lease()
    try:
        answer = perform(effect)
    except GatewayError as error:
        refused = error
        unknown = until_recorded(
            transaction, check_lease, lambda connection: effects.failed(connection, lease, effect, refused, chosen)
        )
        if unknown and not error.permanent:
            raise _refusal(Decision.AMBIGUOUS, effect, str(error)) from error
        raise
    reference, learned = _reference_and_columns(answer)
    try:
        return until_recorded(
            transaction, check_lease, lambda connection: effects.applied(connection, lease, effect, reference, learned)
        )
    except LeaseLost as lost:
        # It has happened, and no table says so: the operator needs the reference to find it.
        log().error(LogEvent.EFFECT_UNRECORDED, kind=kind.name, key=dict(effect.key), reference=reference)
        happened = f"it happened, with the reference {reference!r}, and could not be recorded before the lease ended"
        raise _refusal(Decision.AMBIGUOUS, effect, happened) from lost


def until_recorded(
    transaction: Transaction, check_lease: Callable[[], None], write: Callable[[PgConnection], Recorded]
) -> Recorded:
    """Write in a transaction; repeat it while the database is gone or does not confirm, until the lease's deadline."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            with transaction() as connection:
                return write(connection)
        except (psycopg2.Error, DatabaseUnreachable) as error:
            # Perhaps it was recorded, or certainly not; every write here may be repeated.
            if not (is_outage(error) or is_passing(error)):
                raise
            check_lease()
            time.sleep(pause)  # nothing tells when the database is back
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


@dataclass
class Asking:
    """One request to the ledger; it is repeated when its commit is in doubt."""

    lease: Lease
    kind: Kind
    key: Mapping[str, Any]
    content: Mapping[str, Any]
    details: Mapping[str, Any] | None
    policy: Policy
    horizon: float
    allowed: Effect | None = None

    def begin(self, connection: PgConnection) -> tuple[Decision, Effect]:
        """The ledger's answer.  A repeated request may perform what the first one was allowed to."""
        decision, effect = effects.begin(
            connection,
            self.lease,
            self.kind,
            self.key,
            self.content,
            self.details,
            self.policy,
            self.horizon,
            unperformed=self.allowed is not None,
        )
        if self.allowed is not None:
            effect = replace(effect, again=self.allowed.again)
        elif decision is Decision.PERFORM:
            self.allowed = effect
        return decision, effect


def _reference_and_columns(answer: Answer) -> tuple[str | None, Mapping[str, Any]]:
    """The provider's reference, and what the table has columns for."""
    if answer is None or isinstance(answer, str):
        return answer, {}
    if not isinstance(answer, Mapping):
        raise TypeError(
            "perform must return the provider's reference as a text, a mapping of it and of columns, or None; it"
            f" returned a {type(answer).__name__}"
        )
    learned = dict(answer)
    return learned.pop("reference", None), learned


def _refusal(decision: Decision, effect: Effect, reason: str = "") -> Exception:
    """Why an effect is not performed."""
    named = f"{effect.kind.name} {'/'.join(str(part) for part in effect.key.values())!r}"
    if decision is Decision.BUSY:
        return EffectBusy(f"run {effect.run_id} is at {named} just now")
    if decision is Decision.CONFLICT:
        return EffectConflict(
            f"{named} belongs to run {effect.run_id}, which asked for it with other content: this run needs another key"
        )
    because = (
        f": {reason}" if reason else f": it was begun at {effect.intent_at:%Y-%m-%d %H:%M:%S %Z} and never settled"
    )
    return AmbiguousEffect(
        f"nobody knows whether {named} happened{because}; find out, say so with"
        f" `rowcall effects resolve {effect.kind.name} {effect.id} --happened` or `--did-not-happen`, and retry the run"
    )
