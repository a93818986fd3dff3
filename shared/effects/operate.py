"""What operators see of the ledger, and how they close what nobody could know."""

from __future__ import annotations

from collections.abc import Sequence

from shared.audit import Admin, record
from shared.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one, fetch_value
from shared.effects.kinds import KINDS, Kind, kept_reference, kind_of
from shared.effects.ledger import HOLDER_LIVES
from shared.effects.statements import STATEMENTS
from shared.errors import EffectInvalid

STATES = ("intent", "applied", "unknown", "refused")

# Whoever looks for what is not settled finds it in the partial index {kind}_open; the rest comes from the primary key.
OPEN = ("intent", "unknown", "refused")


def _listing(kind: Kind) -> str:
    return f"""
SELECT '{kind.name}' AS kind, id, concat_ws('/', {", ".join(kind.key)}) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM {kind.name}"""


LIST = {
    name: f"""{_listing(kind)}
WHERE (%(states)s::text[] IS NULL OR state = ANY(%(states)s::text[])) AND (NOT %(open)s OR state <> 'applied')
ORDER BY id DESC LIMIT %(limit)s
"""
    for name, kind in KINDS.items()
}

# The index {kind}_run of each table.
OF_RUN = " UNION ALL ".join(f"{_listing(kind)} WHERE run_id = %(run_id)s" for kind in KINDS.values())

LOCK = {name: f"{_listing(kind)} WHERE id = %(id)s FOR UPDATE" for name, kind in KINDS.items()}

HAPPENED = {
    name: f"""
UPDATE {name} SET state = 'applied', provider_reference = coalesce(%(reference)s, provider_reference),
    applied_at = now(), updated_at = now()
WHERE id = %(id)s
RETURNING *
"""
    for name in KINDS
}

NEVER_HAPPENED = "an operator found that it did not happen"


def list_effects(
    connection: Connection, kind: str | None = None, states: Sequence[str] = (), limit: int = 50
) -> list[Row]:
    """The newest effects, of one kind or of all, in these states or in any."""
    kinds = [kind_of(kind).name] if kind else list(KINDS)
    asked = {"states": list(states) or None, "open": bool(states) and set(states) <= set(OPEN), "limit": limit}
    rows = [row for name in kinds for row in fetch_all(connection, LIST[name], asked)]
    return sorted(rows, key=lambda row: (row["intent_at"], row["id"]), reverse=True)[:limit]


def effects_of(connection: Connection, run_id: int) -> list[Row]:
    """What a run did, or tried, the first one first."""
    rows = fetch_all(connection, OF_RUN, {"run_id": run_id})
    return sorted(rows, key=lambda row: (row["intent_at"], row["id"]))


def resolve(
    connection: Connection, kind: str, effect_id: int, happened: bool, admin: Admin, reference: str | None = None
) -> Row:
    """Close an effect of which nobody knew: it happened, or it did not and may be done by the run's next attempt."""
    name = kind_of(kind).name
    before = fetch_one(connection, LOCK[name], {"id": effect_id}) if 0 < effect_id <= LARGEST_ID else None
    if before is None:
        raise EffectInvalid(f"there is no effect {effect_id} of {name}; `rowcall effects list` shows those that are")
    if before["state"] not in ("unknown", "intent"):
        raise EffectInvalid(f"effect {effect_id} of {name} is {before['state']}: there is nothing to resolve")
    if before["state"] == "intent" and fetch_value(connection, HOLDER_LIVES, before):
        raise EffectInvalid(
            f"run {before['run_id']} is at effect {effect_id} of {name} just now: wait for its end, or cancel it first"
        )
    if happened:
        fetch_one(connection, HAPPENED[name], {"id": effect_id, "reference": kept_reference(reference)})
    else:
        settled = {"id": effect_id, "state": "refused", "refusal": NEVER_HAPPENED, "permanent": True}
        fetch_one(connection, STATEMENTS[name].settle, settled)
    after = fetch_one(connection, LOCK[name], {"id": effect_id})
    assert after is not None
    record(connection, admin.who, "resolve", "effect", effect_id, before, after, admin.request_id)
    return after
