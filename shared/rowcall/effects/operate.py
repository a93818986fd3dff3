"""What a run has done, and how operators close what nobody could know."""

from __future__ import annotations

from rowcall.access.audit import Operator, record
from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import EffectNotFound, EffectNotOpen
from rowcall.effects.kinds import KINDS, Kind, kept_reference, kind_of
from rowcall.effects.ledger import HOLDER_LIVES
from rowcall.effects.statements import STATEMENTS

STATES = ("intent", "applied", "unknown", "refused")


def listing(kind: Kind) -> str:
    """What is shown of an effect of this kind, whichever ones are asked for."""
    return f"""
SELECT '{kind.name}' AS kind, id, concat_ws('/', {", ".join(kind.key)}) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.{kind.name}"""


# The index {kind}_run of each table.
OF_RUN = " UNION ALL ".join(f"{listing(kind)} WHERE run_id = %(run_id)s" for kind in KINDS.values())

LOCK = {name: f"{listing(kind)} WHERE id = %(id)s FOR UPDATE" for name, kind in KINDS.items()}

HAPPENED = {
    name: f"""
UPDATE rowcall.{name} SET state = 'applied', provider_reference = coalesce(%(reference)s, provider_reference),
    applied_at = now(), updated_at = now()
WHERE id = %(id)s
RETURNING *
"""
    for name in KINDS
}

NEVER_HAPPENED = "an operator found that it did not happen"


def effects_of(connection: Connection, run_id: int) -> list[Row]:
    """What a run did, or tried, the first one first."""
    rows = fetch_all(connection, OF_RUN, {"run_id": run_id})
    return sorted(rows, key=lambda row: (row["intent_at"], row["id"]))


def lock_effect(connection: Connection, kind: str, effect_id: int) -> Row:
    """The effect as it is until the end of this transaction."""
    name = kind_of(kind).name
    effect = fetch_one(connection, LOCK[name], {"id": effect_id}) if 0 < effect_id <= LARGEST_ID else None
    if effect is None:
        raise EffectNotFound(name, effect_id)
    return effect


def resolve(
    connection: Connection, kind: str, effect_id: int, happened: bool, operator: Operator, reference: str | None = None
) -> Row:
    """Close an effect of which nobody knew: it happened, or it did not and may be done by the run's next attempt."""
    name, before = kind_of(kind).name, lock_effect(connection, kind, effect_id)
    if before["state"] not in ("unknown", "intent"):
        sentence = f"effect {effect_id} of {name} is {before['state']}: there is nothing to resolve"
        raise EffectNotOpen(before["state"], sentence)
    if before["state"] == "intent" and fetch_value(connection, HOLDER_LIVES, before):
        raise EffectNotOpen(
            before["state"],
            f"run {before['run_id']} is at effect {effect_id} of {name} just now: wait for its end, or cancel it first",
        )
    if happened:
        fetch_one(connection, HAPPENED[name], {"id": effect_id, "reference": kept_reference(reference)})
    else:
        settled = {"id": effect_id, "state": "refused", "refusal": NEVER_HAPPENED, "permanent": True}
        fetch_one(connection, STATEMENTS[name].settle, settled)
    after = fetch_one(connection, LOCK[name], {"id": effect_id})
    assert after is not None
    record(connection, operator.who, "resolve", "effect", effect_id, before, after, operator.request_id)
    return after
