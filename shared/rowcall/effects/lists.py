"""Lists of effects: the newest of all kinds, a page at a time.

Each kind is a list of its own, by id, which never changes; a page takes from the head of whichever begins with the
youngest.  So a page is gone on from where it left each kind, and what comes or changes meanwhile shifts nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all
from rowcall.effects.kinds import KINDS, kind_of
from rowcall.effects.operate import STATES, listing
from rowcall.queue.views.pages import PAGE_BYTES, fitting

# Of each kind a page at the most, and one more, which tells that there is another.
NEWEST = "ORDER BY id DESC LIMIT %(limit)s + 1"

# The primary key, from the last place on; nearly all effects are applied.
ALL = {name: f"({listing(kind)} WHERE id < %(behind_{name})s {NEWEST})" for name, kind in KINDS.items()}
APPLIED = {
    name: f"({listing(kind)} WHERE state = 'applied' AND id < %(behind_{name})s {NEWEST})"
    for name, kind in KINDS.items()
}

# What is not settled is a stretch of the partial index {kind}_open, state by state.
OPEN = {
    (name, state): f"({listing(kind)} WHERE state = '{state}' AND id < %(behind_{name})s {NEWEST})"
    for name, kind in KINDS.items()
    for state in STATES
    if state != "applied"
}

# The index {kind}_run; materialized, because a planner that saw the ORDER BY would walk through all effects.
OF_A_RUN = {
    name: f"""(
WITH its AS MATERIALIZED ({listing(kind)} WHERE run_id = %(run_id)s)
SELECT * FROM its
WHERE id < %(behind_{name})s AND (%(states)s::text[] IS NULL OR state = ANY(%(states)s::text[])) {NEWEST}
)"""
    for name, kind in KINDS.items()
}

# Nobody needs to know whether it is a thousand or two: counting stops here.
COUNTED_MOST = 1000

# The index {kind}_open.
COUNT_UNKNOWN = " UNION ALL ".join(
    f"""
SELECT '{name}' AS kind, count(*) AS unknown FROM (
    SELECT FROM rowcall.{name} WHERE state = 'unknown' LIMIT {COUNTED_MOST}
) AS {name}"""
    for name in KINDS
)


@dataclass(frozen=True)
class Page:
    """Some of the effects that were asked for; kind -> id behind which there may be more, None where there is none."""

    effects: list[Row]
    behind: Mapping[str, int] | None


def list_effects(
    connection: Connection, kind: str | None = None, states: Sequence[str] = (), limit: int = 50
) -> list[Row]:
    """The newest effects, of one kind or of all, in these states or in any."""
    return page_of_effects(connection, kind, states, limit).effects


def page_of_effects(
    connection: Connection,
    kind: str | None = None,
    states: Sequence[str] = (),
    limit: int = 50,
    run_id: int | None = None,
    behind: Mapping[str, int] | None = None,
    page_bytes: int = PAGE_BYTES,
) -> Page:
    """The same, of one run or of any, from where the page before had come to."""
    kinds = [kind_of(kind).name] if kind else list(KINDS)
    places = dict.fromkeys(KINDS, LARGEST_ID) | dict(behind or {})
    parameters = {"limit": limit, "run_id": run_id, "states": list(states) or None}
    rows = fetch_all(
        connection,
        page_sql(kinds, states, run_id),
        parameters | {f"behind_{name}": place for name, place in places.items()},
    )
    newest = [sorted((row for row in rows if row["kind"] == name), key=lambda row: -row["id"]) for name in kinds]
    merged = list(heapq.merge(*newest, key=lambda row: (row["intent_at"], row["id"]), reverse=True))
    page = fitting(merged[:limit], page_bytes)
    # Each kind's come in the order of their ids, so the last one of a kind is the furthest.
    reached = places | {row["kind"]: row["id"] for row in page}
    return Page(page, reached if len(merged) > len(page) else None)


def count_unknown(connection: Connection) -> dict[str, int]:
    """Kind -> how many wait for an operator's word, COUNTED_MOST at the most."""
    return {row["kind"]: row["unknown"] for row in fetch_all(connection, COUNT_UNKNOWN)}


def page_sql(kinds: Sequence[str], states: Sequence[str], run_id: int | None) -> str:
    """The statement that looks at the fewest rows for what is asked."""
    return " UNION ALL ".join(part for name in kinds for part in _parts(name, states, run_id))


def _parts(name: str, states: Sequence[str], run_id: int | None) -> list[str]:
    if run_id is not None:
        return [OF_A_RUN[name]]
    if not states:
        return [ALL[name]]
    return [APPLIED[name] if state == "applied" else OPEN[name, state] for state in sorted(set(states))]
