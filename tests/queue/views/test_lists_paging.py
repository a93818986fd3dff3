"""Successive pages neither skip nor repeat a run while rows come and go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue import Filter, list_runs
from rowcall.queue.views.lists import scan_for
from rowcall.queue.views.pages import Order
from rowcall.status import Status
from tests.support.rows import at, definition_of, run_in

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

# Each row's time, its values, and the number of the page before which it appears or disappears (0: from the start).
MOMENTS = st.integers(0, 3).map(lambda hours: NOON + hours * HOUR)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "created_at": MOMENTS,
            "queue": st.sampled_from(["mail", "web"]),
            "failed": st.booleans(),
            "bytes": st.sampled_from([1, 1000]),
            "of": st.booleans(),
            "comes": st.sampled_from([0, 0, 0, 1, 2, 3]),
            "goes": st.sampled_from([None, None, None, 1, 2, 3]),
        }
    ),
    max_size=12,
)
FILTERS = st.sampled_from(
    [
        {},
        {"queue": "mail"},
        {"status": (Status.DEAD,)},
        {"definition": "nightly"},
        {"definition": "nightly", "queue": "web"},
    ]
)


@given(
    ROWS,
    FILTERS,
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([1, 2500, 100_000]),
    st.sampled_from(Order),
)
def test_who_follows_next_sees_what_was_there_all_the_time_once_and_in_order(
    connection: PgConnection,
    rows: list[dict[str, Any]],
    wanted: dict[str, Any],
    limits: list[int],
    most: int,
    ranged: bool,
    page_bytes: int,
    order: Order,
) -> None:
    connection.rollback()  # of the example before
    nightly = definition_of(connection, "nightly")
    asked = Filter(**wanted | ({"created_after": NOON + HOUR, "created_before": NOON + 3 * HOUR} if ranged else {}))
    by_id = scan_for(asked, order).name.startswith("all")
    made: dict[int, int] = {}
    seen: list[tuple[datetime, int]] = []
    cursor: str | None = None
    number = 0
    while number == 0 or cursor is not None:
        for place, row in enumerate(rows):
            if row["comes"] == number:
                made[place] = inserted(connection, row, nightly)
            if row["goes"] == number and place in made:
                fetch_all(connection, "DELETE FROM rowcall.job_runs WHERE id = %(id)s", {"id": made[place]})
        limit = limits[number % len(limits)]
        page = list_runs(
            connection, asked, limit, cursor, most, include=["payload"], order=order, page_bytes=page_bytes
        )
        assert len(page.runs) <= limit
        seen += [(NOON if by_id else run["created_at"], run["id"]) for run in page.runs]
        cursor, number = page.next, number + 1
        assert number < 50, "there are too many pages"
    assert seen == sorted(set(seen), reverse=order is Order.DESC), "in order, without duplicates"
    stayed = {made[place] for place, row in enumerate(rows) if row["comes"] == 0 and not (row["goes"] or 99) < number}
    matching = {made[place] for place, row in enumerate(rows) if place in made and matches(row, asked)}
    assert stayed & matching <= {run_id for _, run_id in seen} <= matching


def inserted(connection: PgConnection, row: dict[str, Any], nightly: int) -> int:
    """Insert a drawn row, and return its id."""
    columns = {"created_at": at(row["created_at"]), "queue": f"'{row['queue']}'"}
    columns["payload"] = f"jsonb_build_object('text', repeat('x', {row['bytes']}))"
    columns |= {"definition_id": str(nightly)} if row["of"] else {}
    columns |= {"failed_at": "now()"} if row["failed"] else {}
    run_id: int = run_in(connection, Status.DEAD if row["failed"] else Status.QUEUED, **columns)["id"]
    return run_id


def matches(row: dict[str, Any], asked: Filter) -> bool:
    """Whether a filter of FILTERS matches it, in plain Python."""
    return (
        (asked.queue is None or row["queue"] == asked.queue)
        and (not asked.status or row["failed"])
        and (asked.definition is None or row["of"])
        and (asked.created_after is None or row["created_at"] >= asked.created_after)
        and (asked.created_before is None or row["created_at"] < asked.created_before)
    )
