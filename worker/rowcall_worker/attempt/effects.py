"""Effect: how a handler does something to the world, once, though its run may be tried many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from rowcall import effects
from rowcall.base.database import PgConnection
from rowcall.base.errors import AmbiguousEffect, EffectConflict, EffectInvalid, GatewayError, Retry
from rowcall.effects import Decision, Effect, Kind, Lease, Policy

# What performing an effect answers: the provider's reference, or that and what the kind's table has columns for.
Answer = str | Mapping[str, Any] | None
Perform = Callable[[Effect], Answer]

# Another run that is at the same effect has ended, or lost its lease, some time; this is when to look again.
BUSY_SECONDS = 15.0


@dataclass(frozen=True)
class Ledger:
    """One attempt's way to the ledger: short transactions of its own, and none open while the world is touched."""

    lease: Lease
    transaction: Callable[[], AbstractContextManager[PgConnection]]
    still_held: Callable[[], None]
    horizon: float

    def once(
        self,
        kind: Kind,
        key: Mapping[str, Any],
        content: Mapping[str, Any],
        details: Mapping[str, Any] | None,
        perform: Perform,
        policy: str | None,
    ) -> Effect:
        """Perform an effect unless it has happened; the effect as it was recorded, now or earlier."""
        chosen = effects.policy_of(policy or kind.policy)
        if Policy.WITH_THE_RUN in (chosen, kind.policy):
            raise EffectInvalid(f"{kind.name} is recorded in run.transaction(), together with the run's success")
        with self.transaction() as connection:
            decision, effect = effects.begin(connection, self.lease, kind, key, content, details, chosen, self.horizon)
        if decision is Decision.DONE:
            return effect
        if decision is not Decision.PERFORM:
            raise _refusal(decision, effect)
        self.still_held()
        try:
            answer = perform(effect)
        except GatewayError as error:
            self._settle_failed(effect, error, chosen)
            raise
        with self.transaction() as connection:
            return effects.applied(connection, self.lease, effect, *_told(answer))

    def _settle_failed(self, effect: Effect, error: GatewayError, policy: Policy) -> None:
        """Write down what the gateway's error tells; where it leaves a doubt that only a person can settle, say so."""
        with self.transaction() as connection:
            unknown = effects.failed(connection, self.lease, effect, error, policy)
        if unknown and not error.permanent:
            raise _refusal(Decision.AMBIGUOUS, effect, str(error)) from error


def _told(answer: Answer) -> tuple[str | None, Mapping[str, Any]]:
    """The provider's reference, and what the table has columns for."""
    if answer is None or isinstance(answer, str):
        return answer, {}
    learned = dict(answer)
    return learned.pop("reference", None), learned


def _refusal(decision: Decision, effect: Effect, reason: str = "") -> Exception:
    """Why an effect is not performed."""
    named = f"{effect.kind.name} {'/'.join(str(part) for part in effect.key.values())!r}"
    if decision is Decision.BUSY:
        return Retry(f"run {effect.run_id} is at {named} just now", after=BUSY_SECONDS)
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
