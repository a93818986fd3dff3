"""Listing failures: per job type and error, how often in the last hour, day and week, with the newest example."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.failures import list as failures_list
from rowcall.queue.failures.count import count_failures
from rowcall.queue.failures.list import list_failures
from rowcall.queue.retention.erase import erase
from rowcall.status import Status
from tests.support.failures import failed


def table(connection: PgConnection, **asked: Any) -> list[tuple[Any, ...]]:
    rows = list_failures(connection, **asked).errors
    return [(row["job_type"], row["error_type"], row["last_hour"], row["last_day"], row["last_week"]) for row in rows]


@pytest.mark.parametrize("counted", [False, True])
def test_each_error_is_counted_over_an_hour_a_day_and_a_week(connection: PgConnection, counted: bool) -> None:
    for age in ("1 minute", "50 minutes", "2 hours", "2 days", "6 days", "7 days 1 hour"):
        failed(connection, age=age)
    if counted:
        count_failures(connection)
    assert table(connection) == [("noop", "ValueError", 2, 3, 5)]


def test_attempts_after_the_last_count_are_added_to_the_counts(connection: PgConnection) -> None:
    failed(connection, age="5 minutes")
    count_failures(connection)
    newest = failed(connection, age="0 seconds")
    [row] = list_failures(connection).errors
    assert (row["last_hour"], row["run_id"]) == (2, newest)
    assert row["last_at"] - row["first_at"] >= row["first_at"].resolution


def test_the_most_frequent_of_the_last_hour_comes_first_then_of_the_day(connection: PgConnection) -> None:
    for error_type, ages in {
        "A": ["3 days"] * 3,
        "B": ["2 hours"] * 2,
        "C": ["1 minute"],
        "D": ["1 minute"] * 2,
    }.items():
        for age in ages:
            failed(connection, error_type=error_type, age=age)
    assert [row[1] for row in table(connection)] == ["D", "C", "B", "A"]
    assert [row[1] for row in table(connection, limit=2)] == ["D", "C"]


def test_one_type_or_one_queue_can_be_asked_for(connection: PgConnection) -> None:
    mail = failed(connection, queue="'mail'", age="10 minutes")
    failed(connection)
    failed(connection, job_type="'other'")
    assert table(connection) == [("noop", "ValueError", 2, 2, 2), ("other", "ValueError", 1, 1, 1)]
    assert table(connection, job_type="other") == [("other", "ValueError", 1, 1, 1)]
    for _ in range(2):
        [row] = list_failures(connection, queue="mail").errors
        assert (row["last_hour"], row["run_id"]) == (1, mail)
        count_failures(connection)
    assert table(connection, job_type="none") == []


def test_the_error_is_that_of_the_newest_example_without_what_differs(connection: PgConnection) -> None:
    failed(connection, "user 17 has no 'address'\nmore")
    newest = failed(connection, "user 18 has no 'name'", age="1 minute")
    [row] = list_failures(connection).errors
    assert (row["error"], row["run_id"]) == ("user * has no *", newest)


def test_an_error_of_which_nothing_would_be_left_is_that_of_the_newest_example(connection: PgConnection) -> None:
    failed(connection, "'street'")
    failed(connection, "'customer_id'", age="1 minute")
    [row] = list_failures(connection).errors
    assert (row["error"], row["last_hour"]) == ("'customer_id'", 2)


@pytest.mark.parametrize("counted", [False, True])
def test_of_an_erased_example_only_the_count_and_the_type_are_left(connection: PgConnection, counted: bool) -> None:
    erased = failed(connection, "no account for Ada", status=Status.DEAD)
    if counted:
        count_failures(connection)
    erase(connection, [erased], Operator("a test"))
    rows = list_failures(connection).errors
    assert [(row["error_type"], row["error"], row["run_id"]) for row in rows] == (
        [("ValueError", None, None)] if counted else []
    )


def test_errors_that_are_counted_together_have_no_type(connection: PgConnection) -> None:
    failed(connection)
    count_failures(connection)
    fetch_all(connection, "UPDATE rowcall.failure_counts SET error_type = '', error_key = ''")
    assert table(connection) == [("noop", None, 1, 1, 1)]


def test_a_list_says_when_attempts_are_missing(connection: PgConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    few = failures_list.FAILURES.replace(str(failures_list.ADDED_MOST), "2")
    monkeypatch.setattr(failures_list, "FAILURES", few)
    failed(connection)
    assert list_failures(connection).complete
    for _ in range(3):
        failed(connection)
    assert not list_failures(connection).complete
    count_failures(connection)
    assert list_failures(connection).complete
    assert table(connection) == [("noop", "ValueError", 4, 4, 4)]


def test_runs_that_wait_for_another_attempt_are_counted_with_their_last_error(connection: PgConnection) -> None:
    places = (("now()", "default"), ("now() + interval '1 hour'", "default"), ("now()", "mail"))
    for number, (run_at, queue) in enumerate(places):
        failed(connection, f"user {number} is unknown", run_at=run_at, queue=f"'{queue}'")
    failed(connection, "user 4 is unknown", status=Status.DEAD)
    assert [row["retrying"] for row in list_failures(connection).errors] == [3]
    assert [row["retrying"] for row in list_failures(connection, queue="mail").errors] == [1]
