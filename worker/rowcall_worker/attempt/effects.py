"""Effects: how a handler does something to the world once, though its run may be tried many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

from rowcall import effects
from rowcall.base.database import PgConnection
from rowcall.base.errors import AmbiguousEffect, EffectConflict, EffectInvalid, GatewayError, Snooze
from rowcall.effects import Decision, Effect, Kind, Policy
from rowcall.queue import Lease

# What performing an effect answers: the provider's reference, or that and what the kind's table has columns for.
Answer = str | Mapping[str, Any] | None
Perform = Callable[[Effect], Answer]
Transaction = Callable[[], AbstractContextManager[PgConnection]]

# By then another run that has begun the same effect has ended, or lost its lease.
BUSY_SECONDS = 15.0


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
    with transaction() as connection:
        decision, effect = effects.begin(connection, lease, kind, key, content, details, chosen, horizon)
    if decision is Decision.DONE:
        return effect
    if decision is not Decision.PERFORM:
        raise _refusal(decision, effect)
    check_lease()
    try:
        answer = perform(effect)
    except GatewayError as error:
        with transaction() as connection:
            unknown = effects.failed(connection, lease, effect, error, chosen)
        if unknown and not error.permanent:
            raise _refusal(Decision.AMBIGUOUS, effect, str(error)) from error
        raise
    with transaction() as connection:
        return effects.applied(connection, lease, effect, *_reference_and_columns(answer))


def _reference_and_columns(answer: Answer) -> tuple[str | None, Mapping[str, Any]]:
    """The provider's reference, and what the table has columns for."""
    if answer is None or isinstance(answer, str):
        return answer, {}
    learned = dict(answer)
    return learned.pop("reference", None), learned


def _refusal(decision: Decision, effect: Effect, reason: str = "") -> Exception:
    """Why an effect is not performed."""
    named = f"{effect.kind.name} {'/'.join(str(part) for part in effect.key.values())!r}"
    if decision is Decision.BUSY:
        until = datetime.now(UTC) + timedelta(seconds=BUSY_SECONDS)
        return Snooze(until, f"run {effect.run_id} is at {named} just now")
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
