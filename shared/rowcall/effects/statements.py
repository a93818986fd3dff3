"""The ledger's SQL: the same five statements for each table, with its key and columns."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.effects.kinds import TABLES, Table
from rowcall.effects.restore import WAS_RESTORED
from rowcall.status import Event, sources_of

# By primary key.  Because of FOR SHARE, neither a sweep nor an operator can end the lease before this transaction ends.
HOLD = f"""
SELECT id FROM rowcall.job_runs
WHERE id = %(run_id)s AND lease_no = %(lease_no)s AND locked_by = %(worker)s
    AND status IN {sources_of(Event.HEARTBEAT)}
FOR SHARE
"""
HELD = f"WITH held AS MATERIALIZED ({HOLD})"


@dataclass(frozen=True)
class Statements:
    """The statements of one table; each finds its row by the unique key or the primary key."""

    insert: str
    find: str
    take: str
    apply: str
    settle: str


def statements(table: Table) -> Statements:
    """Return the statements for this table."""
    columns = (*table.unique, *table.known, "content_hash", "run_id", "lease_no")
    learned = "".join(f", {name} = %({name})s" for name in table.learned)
    return Statements(
        # No row: the lease is lost or the key is taken.  Of two concurrent inserts of one key, the second waits until
        # the first commits.
        insert=f"""
{HELD}
INSERT INTO rowcall.{table.name} ({", ".join(columns)})
SELECT {", ".join(f"%({name})s" for name in columns)} FROM held
ON CONFLICT ({", ".join(table.unique)}) DO NOTHING
RETURNING *, {WAS_RESTORED} AS was_restored
""",
        find=f"""
SELECT *, coalesce(intent_at > now() - %(horizon)s * interval '1 second', true) AS within_horizon
FROM rowcall.{table.name}
WHERE {" AND ".join(f"{name} = %({name})s" for name in table.unique)}
FOR UPDATE
""",
        # Keep intent_at while the effect is open, because the provider's horizon begins at the first try.
        take=f"""
UPDATE rowcall.{table.name}
SET state = 'intent', run_id = %(run_id)s, lease_no = %(lease_no)s, refusal = NULL, updated_at = now(),
    intent_at = CASE WHEN %(anew)s THEN now() ELSE intent_at END
WHERE id = %(id)s
RETURNING *
""",
        # Only the attempt that began the effect can apply it.  An attempt whose commit was not confirmed applies it
        # again.
        apply=f"""
{HELD}
UPDATE rowcall.{table.name}
SET state = 'applied', provider_reference = %(reference)s, applied_at = pg_catalog.now(),
    updated_at = pg_catalog.now(){learned}
WHERE id = %(id)s AND run_id = %(run_id)s AND lease_no = %(lease_no)s AND state IN ('intent', 'applied')
    AND EXISTS (SELECT FROM held)
RETURNING {", ".join(("provider_reference", "applied_at", *table.learned))}
""",
        # After a permanent refusal, the effect begins again as a new generation, with another key for the provider.
        settle=f"""
UPDATE rowcall.{table.name}
SET state = %(state)s, refusal = coalesce(%(refusal)s, refusal), updated_at = now(),
    generation = generation + CASE WHEN %(permanent)s AND %(state)s = 'refused' THEN 1 ELSE 0 END
WHERE id = %(id)s AND state IN ('intent', 'unknown')
RETURNING *
""",
    )


STATEMENTS = {table.name: statements(table) for table in TABLES}
