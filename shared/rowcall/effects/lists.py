"""Lists of effects, a page at a time, from the newest to the oldest or in reverse.

Each table is read in the order of its ids, and a page merges these lists by time.  The cursor contains the last id of
each table, so rows that are added or changed between two pages do not move others to another page.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all
from rowcall.base.errors import EffectKindUnknown
from rowcall.effects.kinds import KINDS, TABLES, Table, message_id, not_repeated, table_of
from rowcall.effects.operate import OPEN, STATES, found_effect, listing, of_kind
from rowcall.effects.restore import LOST_EMAIL
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views import cursors
from rowcall.queue.views.pages import PAGE_BYTES, Order, fitting


def listed(table: Table) -> str:
    """Return the SELECT of a list: with the table's own columns, by which an operator finds the effect elsewhere."""
    named = ", ".join(f"'{name}', {name}" for name in (*table.key, *table.known, *table.learned))
    return listing(table, f"jsonb_strip_nulls(jsonb_build_object({named})) AS details")


def _beyond(table: Table, order: Order) -> str:
    """Return the condition for rows beyond the last page."""
    return f"id {order.past} %(behind_{table.name})s"


def _first(order: Order) -> str:
    """Return the end of a SELECT: at most a page, and one more row, which shows that there is another page."""
    return f"ORDER BY id {order.way} LIMIT %(limit)s + 1"


# Scans the primary key from the last id on, because nearly all effects are applied.  For one kind of a shared table, it
# scans {table}_kind.
ALL = {
    (table.name, order): f"({listed(table)} WHERE {_beyond(table, order)}{of_kind(table)} {_first(order)})"
    for table in TABLES
    for order in Order
}

# For each state but applied, scans a range of the partial index {table}_open; for applied, scans as ALL does.
IN_STATE = {
    (table.name, state, order): (
        f"({listed(table)} WHERE state = '{state}' AND {_beyond(table, order)}{of_kind(table)} {_first(order)})"
    )
    for table in TABLES
    for state in STATES
    for order in Order
}

# Uses the index {table}_run; MATERIALIZED, because otherwise the planner may scan all effects in the order of ORDER BY.
# Only ids, because a run may have far more effects than a page shows.
OF_A_RUN = {
    (table.name, order): f"""(
WITH its AS MATERIALIZED (
    SELECT id FROM rowcall.{table.name}
    WHERE run_id = %(run_id)s AND {_beyond(table, order)}{of_kind(table)}
        AND (%(states)s::text[] IS NULL OR state = ANY(%(states)s::text[]))
)
{listed(table)} WHERE id IN (SELECT id FROM its {_first(order)})
)"""
    for table in TABLES
    for order in Order
}

# Primary key.
SHOW = {table.name: f"{listed(table)} WHERE id = %(id)s{of_kind(table)}" for table in TABLES}

# Skips from one kind to the next in the unique index.
DECLARED_KINDS = """
WITH RECURSIVE leap AS (
    (SELECT kind FROM rowcall.other_effects ORDER BY kind LIMIT 1)
    UNION ALL
    SELECT (SELECT kind FROM rowcall.other_effects WHERE kind > leap.kind ORDER BY kind LIMIT 1) FROM leap
    WHERE leap.kind IS NOT NULL
)
SELECT kind FROM leap WHERE kind IS NOT NULL
"""

# Counting stops here, because the exact number beyond it does not matter.
COUNTED_MOST = 1000

# The kind of a row.
KIND = {table.name: "kind" if table.shared else f"'{table.name}'" for table in TABLES}

# Uses the index {table}_open.
COUNT_UNKNOWN = " UNION ALL ".join(
    f"""
SELECT kind, count(*) AS unknown FROM (
    SELECT {KIND[table.name]} AS kind FROM rowcall.{table.name}
    WHERE state = 'unknown' LIMIT {COUNTED_MOST}
) AS {table.name} GROUP BY kind"""
    for table in TABLES
)

# The runs that end as dead again until an operator resolves an effect: its outcome is unknown, or a dead worker has
# begun it and it must not be repeated.  Uses the index {table}_open.
UNRESOLVED_RUNS = " UNION ".join(
    f"""
(SELECT run_id FROM rowcall.{table.name} WHERE {condition} ORDER BY id DESC LIMIT {COUNTED_MOST})"""
    for table in TABLES
    for condition in ("state = 'unknown'", f"state = 'intent' AND {KIND[table.name]} = ANY(%(not_repeated)s::text[])")
)


@dataclass(frozen=True)
class Page:
    """Some effects, and the cursor of the next page; None if there are no more."""

    effects: list[Row]
    next: str | None


def list_effects(
    connection: Connection, kind: str | None = None, states: Sequence[str] = (), limit: int = 50
) -> list[Row]:
    """Return the newest effects, of one kind or all, in these states or any."""
    return page_of_effects(connection, kind, states, limit).effects


def show_effect(connection: Connection, kind: str, effect_id: int) -> Row:
    """Return an effect with the details that an operator needs to find it elsewhere, or raise EffectNotFound."""
    return _with_message_id(found_effect(connection, SHOW[table_of(kind).name], kind, effect_id))


def page_of_effects(
    connection: Connection,
    kind: str | None = None,
    states: Sequence[str] = (),
    limit: int = 50,
    run_id: int | None = None,
    cursor: str | None = None,
    page_bytes: int = PAGE_BYTES,
    order: Order = Order.DESC,
) -> Page:
    """Return a page of the newest or the oldest effects, of one run or all, after the previous page."""
    tables = [table_of(kind)] if kind else list(TABLES)
    scope = order.scope(f"effects {kind} {sorted(set(states))} {run_id}")
    places = (
        dict.fromkeys((table.name for table in TABLES), order.beginning) if cursor is None else _read(scope, cursor)
    )
    parameters = {"kind": kind, "limit": limit, "run_id": run_id, "states": list(states) or None}
    rows = fetch_all(
        connection,
        page_sql(tables, states, run_id, order),
        parameters | {f"behind_{name}": place for name, place in places.items()},
    )
    if not rows and kind and kind not in (known := [*KINDS, *declared_kinds(connection)]):
        raise EffectKindUnknown(kind, known)
    descends = order is Order.DESC
    lists = [
        sorted((row for row in rows if table_of(row["kind"]) is table), key=lambda row: row["id"], reverse=descends)
        for table in tables
    ]
    merged = list(heapq.merge(*lists, key=lambda row: (row["intent_at"], row["id"], row["kind"]), reverse=descends))
    page = fitting([_with_message_id(row) for row in merged[:limit]], page_bytes)
    # The rows of each table are in the order of their ids, so the last one is where its next page begins.
    reached = places | {table_of(row["kind"]).name: row["id"] for row in page}
    return Page(page, _written(scope, reached) if len(merged) > len(page) else None)


def _written(scope: str, places: Mapping[str, int]) -> str:
    """Return the cursor for the last id of each table."""
    return cursors.written_text(scope, " ".join(str(places[table.name]) for table in TABLES))


def _read(scope: str, cursor: str) -> dict[str, int]:
    """Return the last id of each table."""
    ids = cursors.read_text(scope, cursor).split()
    if len(ids) != len(TABLES) or not all(number.isdecimal() and int(number) <= LARGEST_ID for number in ids):
        raise cursors.not_a_cursor()
    return {table.name: int(number) for table, number in zip(TABLES, ids, strict=True)}


def _with_message_id(row: Row) -> Row:
    """Add the Message-ID of an email that may have been sent, unless it may have been sent with an earlier one."""
    if row["kind"] != "sent_emails" or row["state"] not in OPEN or row["refusal"] == LOST_EMAIL:
        return row
    given = {"message_id": message_id(row["kind"], row["id"], row["intent_at"])}
    return {**row, "details": row["details"] | given}


def declared_kinds(connection: Connection) -> list[str]:
    """Return the app's kinds that have effects; this process need not have their declarations."""
    return [row["kind"] for row in fetch_all(connection, DECLARED_KINDS)]


def count_unknown(connection: Connection) -> dict[str, int]:
    """Return how many effects of each kind are unknown, up to COUNTED_MOST per table."""
    return dict.fromkeys(KINDS, 0) | {row["kind"]: row["unknown"] for row in fetch_all(connection, COUNT_UNKNOWN)}


def unresolved_runs(connection: Connection) -> list[int]:
    """Return the runs that cannot succeed until an effect is resolved, for the newest COUNTED_MOST of each table."""
    rows = fetch_all(connection, BY_INDEX + UNRESOLVED_RUNS, {"not_repeated": not_repeated()})
    return [row["run_id"] for row in rows]


def unresolved_effects(connection: Connection, run_id: int) -> list[Row]:
    """Return the effects, at most a page, that must be resolved before this run, which is not running, can succeed."""
    page = page_of_effects(connection, states=OPEN, run_id=run_id)
    return [row for row in page.effects if row["state"] == "unknown" or row["kind"] in not_repeated()]


def page_sql(tables: Sequence[Table], states: Sequence[str], run_id: int | None, order: Order) -> str:
    """Return the statement that reads the fewest rows for this request."""
    return " UNION ALL ".join(part for table in tables for part in _parts(table.name, states, run_id, order))


def _parts(name: str, states: Sequence[str], run_id: int | None, order: Order) -> list[str]:
    if run_id is not None:
        return [OF_A_RUN[name, order]]
    if not states:
        return [ALL[name, order]]
    return [IN_STATE[name, state, order] for state in sorted(set(states))]
