"""Counting failures: each failed attempt is counted once, in its minute, and without the text of its error."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_one
from rowcall.queue.failures import count
from rowcall.queue.failures.count import ERRORS_MOST, LOCK, count_failures, delete_old_counts
from rowcall.status import FAILURES, Event
from tests.support.failures import failed
from tests.support.housekeeping import prune


def counts(connection: PgConnection, *columns: str) -> list[tuple[Any, ...]]:
    names = ", ".join(columns or ("job_type", "queue", "error_type", "failures"))
    rows = fetch_all(connection, f"SELECT {names} FROM rowcall.failure_counts ORDER BY {names}")
    return [tuple(row.values()) for row in rows]


def test_the_same_error_of_a_type_and_a_queue_in_one_minute_is_one_row(connection: PgConnection) -> None:
    for _ in range(3):
        failed(connection)
    failed(connection, error="another")
    failed(connection, error_type="KeyError")
    failed(connection, queue="'mail'")
    failed(connection, job_type="'other'")
    assert count_failures(connection) == 7
    assert counts(connection) == [
        ("noop", "default", "KeyError", 1),
        ("noop", "default", "ValueError", 1),
        ("noop", "default", "ValueError", 3),
        ("noop", "mail", "ValueError", 1),
        ("other", "default", "ValueError", 1),
    ]


def test_the_row_names_the_minute_and_the_newest_attempt(connection: PgConnection) -> None:
    newest = failed(connection, age="5 minutes")
    failed(connection, age="5 minutes 0.001 seconds")
    count_failures(connection)
    row = fetch_one(connection, "SELECT *, now() - interval '5 minutes' AS newest FROM rowcall.failure_counts")
    assert row
    assert (row["run_id"], row["lease_no"], row["last_at"]) == (newest, 1, row["newest"])
    assert row["minute"] == row["newest"].replace(second=0, microsecond=0)


@pytest.mark.parametrize("outcome", [*FAILURES, Event.RELEASE, Event.SNOOZE, Event.CANCELLED])
def test_only_failures_are_counted(connection: PgConnection, outcome: Event) -> None:
    failed(connection, outcome=outcome)
    assert count_failures(connection) == (1 if outcome in FAILURES else 0)


SAME = [
    ("user 17 is unknown", "user 18 is unknown"),
    ("order 'a b' has no lines", "order 'c' has no lines"),
    ('no file "ada.pdf"', 'no file "bob.pdf"'),
    ("ada@shop.example refused", "bob@shop.example refused"),
    ("timed out after 3.2s at 10.0.0.1:5432", "timed out after 5s at 10.0.0.2:5432"),
    ("it broke\nin one place", "it broke\nin another"),
    ("x" * 200 + "a", "x" * 200 + "b"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_differs_from_run_to_run_does_not_make_another_error(
    connection: PgConnection, one: str, other: str
) -> None:
    failed(connection, one)
    failed(connection, other)
    count_failures(connection)
    assert counts(connection, "failures") == [(2,)]


def test_no_text_of_an_error_is_kept(connection: PgConnection) -> None:
    failed(connection, "no account for Ada Lovelace", error_type="LookupError")
    count_failures(connection)
    [(row,)] = counts(connection, "to_jsonb(failure_counts)::text")
    assert "LookupError" in row
    assert "Ada" not in row


def test_counting_again_adds_only_what_is_new(connection: PgConnection) -> None:
    failed(connection, age="5 minutes")
    assert (count_failures(connection), count_failures(connection)) == (1, 0)
    newest = failed(connection, age="4 minutes 59.999 seconds")
    assert count_failures(connection) == 1
    assert sum(failures for (failures,) in counts(connection, "failures")) == 2
    assert counts(connection, "max(run_id)") == [(newest,)]


def test_an_attempt_that_may_not_be_committed_yet_is_left_to_the_next_count(connection: PgConnection) -> None:
    failed(connection, age="1 second")
    assert count_failures(connection) == 0


def test_attempts_of_the_time_before_are_counted_for_as_long_as_counts_are_kept(connection: PgConnection) -> None:
    failed(connection, age="7 days 23 hours")
    failed(connection, age="8 days 1 minute")
    assert count_failures(connection) == 1


def test_a_minute_tells_apart_a_few_errors_of_each_type_and_counts_the_others_together(
    connection: PgConnection,
) -> None:
    for number in range(ERRORS_MOST + 5):
        failed(connection, error_type=f"E{number}")
    failed(connection, error_type="E3")
    failed(connection, job_type="'other'")
    count_failures(connection)
    noop = [row[2:] for row in counts(connection) if row[0] == "noop"]
    assert len(noop) == ERRORS_MOST + 1
    assert ("", 5) in noop
    assert ("E3", 2) in noop
    assert counts(connection)[-1] == ("other", "default", "ValueError", 1)


def test_a_minute_that_is_counted_in_parts_tells_apart_no_more(
    connection: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count, "COUNT", count.COUNT.replace(f"FIRST {count.BATCH} ROWS", "FIRST 1 ROWS"))
    monkeypatch.setattr(count, "BATCH", 1)
    monkeypatch.setattr(count, "BATCHES_MOST", 100)
    for number in range(ERRORS_MOST + 5):
        failed(connection, error_type=f"E{number:02}", age=f"10 minutes -0.00{number:02} seconds")
    failed(connection, error_type="E00", age="10 minutes -0.1 seconds")
    assert count_failures(connection) == ERRORS_MOST + 6
    assert len(counts(connection)) == ERRORS_MOST + 1
    assert counts(connection)[:2] == [("noop", "default", "", 5), ("noop", "default", "E00", 2)]


def test_attempts_that_ended_at_the_same_time_are_counted_in_one_batch(
    connection: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count, "COUNT", count.COUNT.replace(f"FIRST {count.BATCH} ROWS", "FIRST 1 ROWS"))
    for _ in range(3):
        failed(connection)
    assert count_failures(connection) == 3


def test_while_one_worker_counts_another_does_not_wait_and_counts_nothing(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        failed(connection)
    with database.transaction(fresh_url) as first, database.transaction(fresh_url) as second:
        assert fetch_all(first, LOCK)
        assert count_failures(second) == 0
        assert count_failures(first) == 1


def test_old_counts_are_deleted_in_batches(connection: PgConnection) -> None:
    for hours in range(5):
        failed(connection, age=f"{hours + 1} hours")
    count_failures(connection)
    fetch_all(connection, "UPDATE rowcall.failure_counts SET minute = minute - interval '7 days 21 hours 30 minutes'")
    assert [delete_old_counts(connection, 2) for _ in range(3)] == [2, 1, 0]
    assert len(counts(connection)) == 2


def test_pruning_deletes_all_old_counts_batch_by_batch(connection: PgConnection) -> None:
    for hours in range(5):
        failed(connection, age=f"{hours + 1} hours")
    count_failures(connection)
    fetch_all(connection, "UPDATE rowcall.failure_counts SET minute = minute - interval '9 days'")
    failed(connection)
    count_failures(connection)
    prune(connection, batch=2)
    assert counts(connection) == [("noop", "default", "ValueError", 1)]
