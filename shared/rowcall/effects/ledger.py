"""The effects ledger: records the intent before an effect is performed, and the outcome afterwards.

Each function locks the run's row, if it still matches the lease (run, lease_no, owner, running), until its transaction
ends, before it writes.  A worker that lost its lease can neither begin nor settle an effect.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from psycopg2 import DataError

from rowcall.base.database import Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import Declined, EffectInvalid, GatewayError, LeaseLost
from rowcall.base.prepared import fetch_prepared_row
from rowcall.base.redaction import fit_to_keep
from rowcall.effects.kinds import Effect, Kind, Policy, effect_of, kept_reference
from rowcall.effects.restore import lost, may_have_happened, since
from rowcall.effects.statements import HOLD, STATEMENTS
from rowcall.queue import Lease
from rowcall.status import Event, sources_of

REFUSAL_CHARACTERS = 1000

# Limits the columns that only people read.
DETAIL_CHARACTERS = 2000

# Whether the attempt that began an effect may still perform it, because its lease has not ended.
HOLDER_LIVES = f"""
SELECT EXISTS (
    SELECT FROM rowcall.job_runs
    WHERE id = %(run_id)s AND lease_no = %(lease_no)s AND status IN {sources_of(Event.HEARTBEAT)}
)
"""


class Decision(StrEnum):
    """What an attempt should do about an effect."""

    PERFORM = "perform"  # call the gateway: nobody else does
    DONE = "done"  # nothing: it has happened
    BUSY = "busy"  # wait: another run has begun it
    AMBIGUOUS = "ambiguous"  # nothing: it may have happened, and must not be repeated
    CONFLICT = "conflict"  # fail: the key belongs to different content


def begin(
    connection: Connection,
    lease: Lease,
    kind: Kind,
    key: Mapping[str, Any],
    content: Mapping[str, Any],
    details: Mapping[str, Any] | None = None,
    horizon: float | None = None,
    unperformed: bool = False,
) -> tuple[Decision, Effect]:
    """Record the intent, or find what an earlier attempt recorded; commit before acting on the decision.

    `content` identifies the effect together with its key: the same key with different content is a conflict.  `details`
    fill further columns of the kind's table.  `horizon` is the number of seconds for which the provider remembers keys.
    `unperformed` says that this lease may have just recorded the intent, but has not performed the effect.
    """
    values = _values(kind, key, content, details or {})
    row = _insert(connection, lease, kind, values)
    if row is not None and row["was_restored"] and may_have_happened(connection, kind, lease.run_id, horizon):
        return _ambiguous(connection, kind, row["id"], lost(kind))
    if row is not None:
        return Decision.PERFORM, effect_of(kind, row)
    row = fetch_one(connection, STATEMENTS[kind.table.name].find, {**values, "horizon": horizon})
    if row is None:
        # The other transaction rolled back between our two statements, so try again.
        return begin(connection, lease, kind, key, content, details, horizon, unperformed)
    if row["content_hash"] != values["content_hash"]:
        return Decision.CONFLICT, effect_of(kind, row)
    own = (row["run_id"], row["lease_no"]) == (lease.run_id, lease.lease_no)
    if unperformed and own and row["state"] == "intent":
        # Write it again, so that the commit of this transaction confirms it.
        return Decision.PERFORM, effect_of(kind, _take(connection, kind, lease, row, anew=False))
    return _continue(connection, lease, kind, row, horizon)


def _continue(
    connection: Connection, lease: Lease, kind: Kind, row: Row, horizon: float | None
) -> tuple[Decision, Effect]:
    """Decide what an attempt does about an existing effect."""
    if row["state"] == "applied":
        return Decision.DONE, effect_of(kind, row)
    if row["state"] == "unknown":
        return Decision.AMBIGUOUS, effect_of(kind, row)
    if row["state"] == "refused":
        taken = _take(connection, kind, lease, row, anew=True)
        if may_have_happened(connection, kind, lease.run_id, horizon, row["updated_at"]):
            return _ambiguous(connection, kind, row["id"], lost(kind))
        return Decision.PERFORM, effect_of(kind, taken)
    if row["run_id"] != lease.run_id and fetch_value(connection, HOLDER_LIVES, row):
        return Decision.BUSY, effect_of(kind, row)
    if kind.policy is Policy.AT_LEAST_ONCE or (kind.policy is Policy.PROVIDER_KEY and row["within_horizon"]):
        return Decision.PERFORM, effect_of(kind, _take(connection, kind, lease, row, anew=False), again=True)
    doubt = may_have_happened(connection, kind, row["run_id"], horizon, row["updated_at"])
    return _ambiguous(connection, kind, row["id"], since(kind.table) if doubt else None)


def _ambiguous(connection: Connection, kind: Kind, effect_id: int, why: str | None = None) -> tuple[Decision, Effect]:
    settled = _settle(connection, kind, effect_id, "unknown", why)
    assert settled is not None  # we have locked it
    return Decision.AMBIGUOUS, effect_of(kind, settled)


def applied(
    connection: Connection, lease: Lease, effect: Effect, reference: str | None, learned: Mapping[str, Any]
) -> Effect:
    """Record that the effect happened, with the provider's reference."""
    unknown = set(learned) - set(effect.kind.table.learned)
    if unknown:
        raise EffectInvalid(f"{effect.kind.name} has no column {min(unknown)!r} for what perform returned")
    parameters = {name: learned.get(name) for name in effect.kind.table.learned}
    if "message_id" in parameters and "message_id" not in learned:
        parameters["message_id"] = effect.message_id  # the handler need not return the id that it sent
    row = fetch_prepared_row(
        connection,
        STATEMENTS[effect.kind.table.name].apply,
        {**parameters, **lease._asdict(), "id": effect.id, "reference": kept_reference(reference)},
    )
    if row is None:
        raise LeaseLost(lease.run_id, lease.lease_no)
    details = {**effect.details, **{name: row[name] for name in parameters}}
    return replace(
        effect, state="applied", reference=row["provider_reference"], applied_at=row["applied_at"], details=details
    )


def failed(connection: Connection, lease: Lease, effect: Effect, error: GatewayError, final: bool) -> bool:
    """Record a gateway's error, after which no attempt follows if it is `final`.

    Return True if the effect is now unknown and needs an operator.

    An effect that certainly did not happen becomes refused, and can begin again.  A refusal of this try says nothing
    about an earlier try that got no answer, unless the provider recognizes the key and so answers for all tries.
    """
    hold(connection, lease)
    policy = effect.kind.policy
    refusal = fit_to_keep(str(error))[:REFUSAL_CHARACTERS]
    answers_for_all = policy is Policy.PROVIDER_KEY and isinstance(error, Declined)
    if error.acted == "no" and (not effect.again or answers_for_all):
        _settle(connection, effect.kind, effect.id, "refused", refusal, error.permanent)
        return False
    if final or (error.acted == "maybe" and policy is Policy.AT_MOST_ONCE):
        _settle(connection, effect.kind, effect.id, "unknown", refusal)
        return True
    return False  # the intent stays, and the next attempt follows the policy


def record(
    connection: Connection,
    lease: Lease,
    kind: Kind,
    key: Mapping[str, Any],
    content: Mapping[str, Any],
    reference: str | None = None,
) -> bool:
    """Record an effect that happens when this transaction commits; return False if it is already recorded."""
    row = _insert(connection, lease, kind, _values(kind, key, content, {}))
    if row is not None:
        parameters = {
            **dict.fromkeys(kind.table.learned),
            **lease._asdict(),
            "id": row["id"],
            "reference": kept_reference(reference),
        }
        fetch_all(connection, STATEMENTS[kind.table.name].apply, parameters)
    return row is not None


def hold(connection: Connection, lease: Lease) -> None:
    """Prevent the lease from ending before this transaction, or raise LeaseLost."""
    if fetch_one(connection, HOLD, lease._asdict()) is None:
        raise LeaseLost(lease.run_id, lease.lease_no)


def _insert(connection: Connection, lease: Lease, kind: Kind, values: Mapping[str, Any]) -> Row | None:
    """Insert the intent; return None if the key is taken."""
    try:
        row = fetch_prepared_row(connection, STATEMENTS[kind.table.name].insert, {**values, **lease._asdict()})
    except DataError as error:
        raise EffectInvalid(f"{kind.name} cannot store these values: {str(error).partition(chr(10))[0]}") from None
    if row is None:
        hold(connection, lease)
    return row


def _take(connection: Connection, kind: Kind, lease: Lease, row: Row, anew: bool) -> Row:
    """Take over an effect that was refused or whose intent was left by an earlier attempt."""
    taken = fetch_one(connection, STATEMENTS[kind.table.name].take, {**lease._asdict(), "id": row["id"], "anew": anew})
    assert taken is not None  # `find` has locked it
    return taken


def _settle(
    connection: Connection, kind: Kind, effect_id: int, state: str, refusal: str | None = None, permanent: bool = False
) -> Row | None:
    """Settle the effect; return None if it is already settled, because an earlier commit succeeded unnoticed."""
    return fetch_one(
        connection,
        STATEMENTS[kind.table.name].settle,
        {"id": effect_id, "state": state, "refusal": refusal, "permanent": permanent},
    )


def _values(
    kind: Kind, key: Mapping[str, Any], content: Mapping[str, Any], details: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of the row's columns, with a hash of the content."""
    if not isinstance(content, Mapping):
        raise EffectInvalid(f"the content of {kind.name} is {content!r:.100} and must be a mapping")
    if unknown := set(details) - set(kind.table.known):
        raise EffectInvalid(f"{kind.name} has no column {min(unknown)!r} for details")
    try:
        text = json.dumps(content, sort_keys=True, default=_plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise EffectInvalid(f"the content of {kind.name} cannot be written as JSON: {error}") from None
    known = {name: _shortened(details.get(name, content.get(name))) for name in kind.table.known}
    return {"kind": kind.name, **key, **known, "content_hash": hashlib.sha256(text.encode()).hexdigest()}


def _shortened(value: object) -> object:
    return value[:DETAIL_CHARACTERS] if isinstance(value, str) else value


def _plain(value: object) -> str:
    if isinstance(value, date | datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")
