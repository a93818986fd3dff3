"""The attempts behind a count of failures: those of this error in this time, the newest first."""

from __future__ import annotations

import pytest

from rowcall.base.database import PgConnection
from rowcall.queue.failures import behind
from rowcall.queue.failures.behind import attempts_behind
from rowcall.queue.failures.list import list_failures
from rowcall.queue.views.stats import EXAMINED_MOST
from rowcall.status import Event, Status
from tests.support.failures import failed


def runs(found: behind.Behind) -> list[int]:
    return [row["run_id"] for row in found.attempts]


def test_the_newest_attempts_of_the_time_come_first(connection: PgConnection) -> None:
    old, new, day = (failed(connection, age=age) for age in ("50 minutes", "1 minute", "20 hours"))
    failed(connection, age="0 minutes", outcome=Event.SNOOZE)
    assert runs(attempts_behind(connection, 1)) == [new, old]
    found = attempts_behind(connection, 24)
    assert runs(found) == [new, old, day]
    assert (found.more, found.complete) == (False, True)
    first = found.attempts[0]
    assert (first["job_type"], first["error_type"], first["error"], first["status"]) == (
        "noop",
        "ValueError",
        "it broke",
        Status.FAILED,
    )


def test_each_count_of_the_list_leads_to_its_own_attempts(connection: PgConnection) -> None:
    """Errors of one type with different texts are counted separately, and numbers in them do not matter."""
    for number in range(3):
        failed(connection, f"it broke at {number}")
    other = failed(connection, "the disk is full")
    failed(connection, "it broke at 9", job_type="'other'")
    failed(connection, "it broke at 9", error_type="KeyError")
    errors = list_failures(connection).errors
    for row in errors:
        found = attempts_behind(connection, 1, row["job_type"], row["error_type"], row["error_key"])
        assert len(found.attempts) == row["last_hour"]
    [full] = [row["error_key"] for row in errors if row["error"] == "the disk is full"]
    assert runs(attempts_behind(connection, 1, "noop", "ValueError", full)) == [other]


def test_a_list_says_when_more_attempts_match(connection: PgConnection) -> None:
    for _ in range(3):
        failed(connection)
    assert attempts_behind(connection, 1, limit=3).more is False
    found = attempts_behind(connection, 1, limit=2)
    assert (len(found.attempts), found.more) == (2, True)


def test_an_empty_list_is_complete(connection: PgConnection) -> None:
    assert attempts_behind(connection, 1, "nothing") == behind.Behind([], False, True)


def test_a_list_says_when_not_all_failures_were_examined(
    connection: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed(connection, "the first", age="9 minutes")
    failed(connection, "the second")
    small = behind.ATTEMPTS_BEHIND.replace(str(EXAMINED_MOST), "1")
    monkeypatch.setattr(behind, "ATTEMPTS_BEHIND", small)
    found = attempts_behind(connection, 1)
    assert ([row["error"] for row in found.attempts], found.complete) == (["the second"], False)
