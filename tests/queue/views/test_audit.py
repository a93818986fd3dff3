"""The audit log in pages: filters, pages that end early, and what a page reads of a long log."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rowcall.access.audit import SUBJECTS, record
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import FilterInvalid
from rowcall.definitions import remove
from rowcall.queue.views import cursors
from rowcall.queue.views.audit import IN_ORDER, OF_ALL, OF_SUBJECT, AuditFilter, list_audit
from rowcall.queue.views.pages import Order
from tests.definitions.making import OPERATOR, kept
from tests.support.plans import looked_at, plan

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

INSERT = """
INSERT INTO rowcall.audit_log (who, action, subject, subject_id, at)
VALUES (%(who)s, %(action)s, %(subject)s, %(subject_id)s, %(at)s) RETURNING id
"""


def written(connection: PgConnection, who: str = "cli:ada", at: datetime = NOON, **more: Any) -> int:
    row = {"who": who, "action": "retry", "subject": "run", "subject_id": 1, "at": at, **more}
    found: int = database.fetch_value(connection, INSERT, row)
    return found


def ids(connection: PgConnection, **criteria: Any) -> list[int]:
    return [row["id"] for row in list_audit(connection, AuditFilter(**criteria)).rows]


def all_pages(connection: PgConnection, criteria: AuditFilter, **bounds: Any) -> Iterator[list[int]]:
    """Yield the ids on each page."""
    cursor = None
    while True:
        page = list_audit(connection, criteria, cursor=cursor, **bounds)
        yield [row["id"] for row in page.rows]
        if (cursor := page.next) is None:
            return


@pytest.mark.parametrize("word", ["create", "created"])
def test_a_word_of_an_older_version_is_found_with_the_word_of_today(connection: PgConnection, word: str) -> None:
    old, new = written(connection, "cli:eve", action="created"), written(connection, "cli:eve", action="create")
    written(connection, "cli:eve", action="change")
    assert ids(connection, who="cli:eve", action=word) == [new, old]


def test_each_filter_leaves_what_was_asked_for_the_newest_first(connection: PgConnection) -> None:
    first = written(connection, "api:billing (0123abcd)", action="pause", subject="definition", subject_id=7)
    second = written(connection, "api:billing (4567cdef)", NOON + timedelta(hours=1), subject_id=7)
    third = written(connection, "cli:ada", NOON + timedelta(hours=2), action="pause", subject="queue", subject_id=None)
    assert ids(connection) == [third, second, first]
    assert ids(connection, who="api:billing") == [second, first]
    assert ids(connection, who="api:billing (4567cdef)") == [second]
    assert ids(connection, action="pause") == [third, first]
    assert ids(connection, subject="run") == [second]
    assert ids(connection, subject="definition", subject_id=7) == [first]
    assert ids(connection, subject="definition", subject_id=7, action="retry") == []
    assert ids(connection, after=NOON + timedelta(hours=1)) == [third, second]
    assert ids(connection, before=NOON + timedelta(hours=1)) == [first]
    assert ids(connection, after=NOON, before=NOON + timedelta(hours=2), who="api:billing") == [second, first]


def test_an_empty_log_and_times_outside_a_log_have_no_rows(connection: PgConnection) -> None:
    assert ids(connection) == []
    written(connection)
    assert ids(connection, before=NOON) == []
    assert ids(connection, after=NOON + timedelta(seconds=1)) == []
    assert ids(connection, after=NOON + timedelta(days=90)) == []


def test_a_row_that_a_long_transaction_wrote_late_is_found_by_its_time(connection: PgConnection) -> None:
    ordinary = [written(connection, at=NOON + timedelta(hours=hour)) for hour in range(12)]
    late = written(connection, at=NOON)
    ordinary += [written(connection, at=NOON + timedelta(hours=hour)) for hour in range(12, 72)]
    assert ids(connection, before=NOON + timedelta(minutes=30)) == [late, ordinary[0]]
    assert ids(connection, after=NOON, before=NOON + timedelta(minutes=90)) == [late, *ordinary[1::-1]]


def test_what_a_change_affected_is_shown_before_and_after(connection: PgConnection) -> None:
    record(connection, "cli:ada", "limit", "queue", None, {"max_running": 1}, {"max_running": 2}, "request-1")
    [row] = list_audit(connection, AuditFilter()).rows
    assert (row["before"], row["after"], row["request_id"]) == ({"max_running": 1}, {"max_running": 2}, "request-1")


def test_definitions_and_queues_are_named_removed_ones_too(connection: PgConnection) -> None:
    weekly = kept(connection, "weekly")["id"]
    remove(connection, "weekly", OPERATOR)
    written(connection, action="erase", subject="definition", subject_id=weekly)
    written(connection, subject="run", subject_id=weekly)
    record(connection, "cli:ada", "limit", "queue", None, {"name": "mail"}, {"name": "mail"})
    record(connection, "cli:ada", "remove", "queue", None, {"name": "mail"}, None)
    record(connection, "cli:ada", "create", "key", 3, None, {"name": "billing"})
    rows = list_audit(connection, AuditFilter(), order=Order.ASC).rows
    assert [(row["action"], row["subject"], row["subject_name"]) for row in rows] == [
        ("create", "definition", "weekly"),
        ("remove", "definition", "weekly"),
        ("erase", "definition", "weekly"),
        ("retry", "run", None),
        ("limit", "queue", "mail"),
        ("remove", "queue", "mail"),
        ("create", "key", None),
    ]
    assert list_audit(connection, AuditFilter(subject="definition", subject_id=weekly)).rows == rows[2::-1]


@pytest.mark.parametrize(
    "bounds", [{"limit": 1}, {"limit": 3}, {"most": 2}, {"limit": 2, "most": 3}, {"page_bytes": 1}]
)
@pytest.mark.parametrize("criteria", [{}, {"action": "pause"}, {"subject": "run", "subject_id": 1}])
def test_following_next_shows_every_match_once_however_early_a_page_ends(
    connection: PgConnection, bounds: dict[str, int], criteria: dict[str, Any]
) -> None:
    for number in range(12):
        written(connection, action="pause" if number % 3 else "retry", subject_id=1 + number % 2)
    seen = [number for page in all_pages(connection, AuditFilter(**criteria), **bounds) for number in page]
    assert seen == ids(connection, **criteria)
    assert len(seen) >= 6


@pytest.mark.parametrize(
    ("criteria", "field"),
    [
        ({"subject_id": 1}, "subject_id"),
        ({"subject": "runs"}, r"subject: must be one of run, .*; did you mean 'run'\?$"),
        ({"subject": "zebra"}, f"subject: must be one of {', '.join(SUBJECTS)}$"),
        ({"after": datetime(2026, 1, 1)}, "after"),
        ({"before": datetime(1999, 1, 1, tzinfo=UTC)}, "before"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_by_its_field(criteria: dict[str, Any], field: str) -> None:
    with pytest.raises(FilterInvalid, match=f"^{field}"):
        AuditFilter(**criteria)


@pytest.mark.parametrize("cursor", ["", "x", cursors.written("audit", 1, 0)])
def test_a_cursor_of_another_list_is_refused(connection: PgConnection, cursor: str) -> None:
    with pytest.raises(FilterInvalid, match=r"^cursor: "):
        list_audit(connection, AuditFilter(), cursor=cursor)


MANY = 100_000

FILL = f"""
INSERT INTO rowcall.audit_log (who, action, subject, subject_id, at)
SELECT 'cli:ada', CASE WHEN number = 1 THEN 'rare' ELSE 'retry' END, 'run', number % 5000,
    '2026-03-01'::timestamptz + number * interval '10 minutes'
FROM generate_series(1, {MANY}) AS number
"""

# The filter, and how many rows a page of 50 may read besides those that find the first ids of its times.
READ: list[tuple[dict[str, Any], int]] = [
    ({}, 51),
    ({"who": "cli:ada"}, 51),
    ({"action": "rare"}, 2 * 20_000),
    ({"subject": "run", "subject_id": 7}, 2 * 21),
    ({"subject": "run", "subject_id": 7, "action": "rare"}, 2 * 21),
    ({"before": NOON + timedelta(days=300)}, 51 + 150),
    ({"after": NOON + timedelta(days=300), "before": NOON + timedelta(days=302), "action": "none"}, 2 * 4 * 150),
]


def test_a_page_reads_the_rows_of_its_subject_or_its_times_and_never_more_than_it_may_scan(
    fresh_url: str,
) -> None:
    connection = database.connect(fresh_url)
    connection.autocommit = True
    fetch_all(connection, FILL)
    for statistics in ("SELECT 1", "ANALYZE rowcall.audit_log"):
        fetch_all(connection, statistics)
        for (criteria, most), order in itertools.product(READ, Order):
            asked = AuditFilter(**criteria)
            known = {
                **asked.parameters(),
                "beyond_id": order.beginning,
                "limit": 50,
                "most": 20_000,
                "page_bytes": 2**20,
            }
            nodes = plan(connection, IN_ORDER + (OF_SUBJECT if asked.subject_id else OF_ALL)[order], known)
            probes = 0 if asked.subject_id else 2 * 20 + 2
            assert looked_at(nodes, "audit_log") <= most + probes, (criteria, statistics)
            walked = {node.get("Index Name") for node in nodes if node.get("Relation Name") == "audit_log"}
            assert walked == {"audit_log_subject" if asked.subject_id else "audit_log_pkey"}, (criteria, statistics)
    connection.close()
