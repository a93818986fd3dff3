"""Erase the details of effects, such as an email's recipient and subject; keys, states and references stay."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.base.database import Connection, fetch_all
from rowcall.effects.kinds import TABLES, Table
from rowcall.effects.restore import LOST_EMAIL


def emptied(table: Table) -> str:
    """Return the UPDATE that empties the details of some runs' effects in this table; it uses the index {table}_run."""
    details = "".join(f"{name} = NULL, " for name in (*table.known, *table.learned))
    # It names nobody, and says that the effect's Message-ID was never sent.
    return f"""
UPDATE rowcall.{table.name} SET {details}refusal = CASE WHEN refusal = '{LOST_EMAIL}' THEN refusal END,
    updated_at = now()
WHERE run_id = ANY(%(run_ids)s::bigint[])
RETURNING id
"""


# Table -> the statement that erases the details of its effects.
ERASE = {table.name: emptied(table) for table in TABLES}

# Ids of effects are unique only within a table, so the run is compared too.
UNAUDITED = """
UPDATE rowcall.audit_log SET before = before - 'refusal', after = after - 'refusal'
WHERE subject = 'effect' AND subject_id = ANY(%(ids)s::bigint[])
    AND (after ->> 'run_id')::bigint = ANY(%(run_ids)s::bigint[])
"""

# The index {table}_run.
LEFT_OPEN = " UNION ".join(
    f"""
SELECT run_id FROM rowcall.{table.name}
WHERE run_id = ANY(%(run_ids)s::bigint[]) AND state IN ('intent', 'unknown')"""
    for table in TABLES
)


def runs_with_open_effects(connection: Connection, run_ids: Sequence[int]) -> list[int]:
    """Return those of these runs that have effects whose outcome is unknown."""
    return sorted(row["run_id"] for row in fetch_all(connection, LEFT_OPEN, {"run_ids": list(run_ids)}))


def erase_details(connection: Connection, run_ids: Sequence[int]) -> int:
    """Erase the details of the effects of these runs; return how many effects they have."""
    runs = {"run_ids": list(run_ids)}
    ids = [row["id"] for table in TABLES for row in fetch_all(connection, ERASE[table.name], runs)]
    if ids:
        fetch_all(connection, UNAUDITED, {**runs, "ids": ids})
    return len(ids)
