"""The effects of a run, and how operators resolve those with an unknown outcome."""

from __future__ import annotations

from rowcall.access.audit import Operator, record
from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import EffectNotFound, EffectNotOpen
from rowcall.effects.kinds import KINDS, TABLES, Table, kept_reference, message_id, table_of
from rowcall.effects.ledger import HOLDER_LIVES
from rowcall.effects.restore import LOST_EMAIL
from rowcall.effects.statements import STATEMENTS

STATES = ("intent", "applied", "unknown", "refused")

# In these states, nobody knows whether the effect happened.
OPEN = ("intent", "unknown")


def listing(table: Table, *more: str) -> str:
    """Return the SELECT that shows effects of this table, without a condition; `more` are further columns."""
    kind = "kind" if table.shared else f"'{table.name}' AS kind"
    return f"""
SELECT {kind}, id, concat_ws('/', {", ".join(table.key)}) AS key, state, run_id, lease_no, generation,
    {", ".join(("provider_reference AS reference, refusal, intent_at, applied_at", *more))}
FROM rowcall.{table.name}"""


def of_kind(table: Table) -> str:
    """Return the condition that selects one kind in a shared table; NULL selects all."""
    return " AND (%(kind)s::text IS NULL OR kind = %(kind)s)" if table.shared else ""


# Uses the index {table}_run of each table.
OF_RUN = " UNION ALL ".join(f"{listing(table)} WHERE run_id = %(run_id)s" for table in TABLES)

# Primary key.
LOCK = {table.name: f"{listing(table)} WHERE id = %(id)s{of_kind(table)} FOR UPDATE" for table in TABLES}

HAPPENED = {
    table.name: f"""
UPDATE rowcall.{table.name} SET state = 'applied', provider_reference = coalesce(%(reference)s, provider_reference),
    refusal = NULL, applied_at = coalesce(applied_at, now()), updated_at = now()
WHERE id = %(id)s
RETURNING *
"""
    for table in TABLES
}

# After an operator's correction; as after a permanent refusal, the provider gets another key.
RETRACT = {
    table.name: f"""
UPDATE rowcall.{table.name} SET state = 'refused', refusal = %(refusal)s, applied_at = NULL, provider_reference = NULL,
    generation = generation + 1, updated_at = now()
WHERE id = %(id)s AND state = 'applied'
RETURNING *
"""
    for table in TABLES
}

# Whether an operator, and not an attempt, recorded an effect as applied; only then can another resolution correct it.
# Uses the index audit_log_subject; ids are unique only within a kind.
APPLIED_BY_OPERATOR = """
SELECT coalesce((
    SELECT after ->> 'state' = 'applied' FROM rowcall.audit_log
    WHERE subject = 'effect' AND subject_id = %(id)s AND action = 'resolve' AND after ->> 'kind' = %(kind)s
    ORDER BY id DESC LIMIT 1
), false)
"""

# Primary key.
LEASE_OVER = "SELECT locked_until FROM rowcall.job_runs WHERE id = %(run_id)s AND locked_until < now()"

# The Message-ID of the email that was resolved, which a later correction needs.
KEEP_MESSAGE_ID = "UPDATE rowcall.sent_emails SET message_id = %(message_id)s WHERE id = %(id)s"

NEVER_HAPPENED = "an operator found that it did not happen"


def effects_of(connection: Connection, run_id: int) -> list[Row]:
    """Return the effects of a run, the oldest first."""
    rows = fetch_all(connection, OF_RUN, {"run_id": run_id})
    return sorted(rows, key=lambda row: (row["intent_at"], row["id"]))


def lock_effect(connection: Connection, kind: str, effect_id: int) -> Row:
    """Lock an effect until the end of this transaction, and return it."""
    return found_effect(connection, LOCK[table_of(kind).name], kind, effect_id)


def found_effect(connection: Connection, sql: str, kind: str, effect_id: int) -> Row:
    """Return the row that a statement of the kind's table finds, or raise EffectNotFound."""
    effect = fetch_one(connection, sql, {"id": effect_id, "kind": kind}) if 0 < effect_id <= LARGEST_ID else None
    if effect is None:
        raise EffectNotFound(kind, effect_id, KINDS)
    return effect


def resolve(
    connection: Connection, kind: str, effect_id: int, happened: bool, operator: Operator, reference: str | None = None
) -> Row:
    """Record that an effect happened, or that it did not, so that the run's next attempt may perform it.

    This also corrects an earlier resolution or its reference, unless an attempt has begun the effect since.
    """
    table, before = table_of(kind).name, lock_effect(connection, kind, effect_id)
    if before["state"] not in OPEN and not _corrects(connection, before, happened, reference):
        sentence = f"effect {effect_id} of {kind} is {before['state']}: there is nothing to resolve"
        raise EffectNotOpen(before["state"], sentence)
    if before["state"] == "intent" and fetch_value(connection, HOLDER_LIVES, before):
        if over := fetch_value(connection, LEASE_OVER, before):
            raise EffectNotOpen(
                before["state"],
                f"run {before['run_id']} began effect {effect_id} of {kind}, and its lease expired at"
                f" {over.isoformat(sep=' ', timespec='seconds')}, but no worker has ended the attempt: start a"
                f" worker, which ends it, or cancel the run with `rowcall runs cancel {before['run_id']} --force`",
            )
        raise EffectNotOpen(
            before["state"],
            f"run {before['run_id']} is performing effect {effect_id} of {kind} now: wait until it ends, or cancel it",
        )
    if happened:
        fetch_one(connection, HAPPENED[table], {"id": effect_id, "reference": kept_reference(reference)})
    elif before["state"] == "applied":
        fetch_one(connection, RETRACT[table], {"id": effect_id, "refusal": NEVER_HAPPENED})
    else:
        settled = {"id": effect_id, "state": "refused", "refusal": NEVER_HAPPENED, "permanent": True}
        fetch_one(connection, STATEMENTS[table].settle, settled)
    if table == "sent_emails" and before["state"] in OPEN and before["refusal"] != LOST_EMAIL:
        kept = message_id(kind, effect_id, before["intent_at"])
        fetch_all(connection, KEEP_MESSAGE_ID, {"id": effect_id, "message_id": kept})
    after = lock_effect(connection, kind, effect_id)
    told = {**after, **({"reason": operator.reason} if operator.reason else {})}
    record(connection, operator.who, "resolve", "effect", effect_id, before, told, operator.request_id)
    return after


def resolvable(connection: Connection, effect: Row) -> bool:
    """Return whether an operator may now resolve this effect, or correct what is recorded about it."""
    if effect["state"] == "intent":
        return not fetch_value(connection, HOLDER_LIVES, effect)
    return effect["state"] != "applied" or bool(fetch_value(connection, APPLIED_BY_OPERATOR, effect))


def _corrects(connection: Connection, effect: Row, happened: bool, reference: str | None) -> bool:
    """Return whether this resolution corrects an operator's earlier resolution, or a recorded refusal."""
    if effect["state"] == "refused":
        return happened
    differs = not happened or kept_reference(reference) not in (None, effect["reference"])
    return differs and bool(fetch_value(connection, APPLIED_BY_OPERATOR, effect))
