"""Results: how an error changes its run, what is stored of it, and that a child process returns it unchanged."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta

import pytest

from rowcall.base.errors import CancelRequested, LeaseLost, Permanent, Retry, Snooze
from rowcall.status import Event
from rowcall_worker.attempt.result import (
    ERROR_CHARACTERS,
    STACK_CHARACTERS,
    AttemptError,
    AttemptResult,
    error_of,
    failure_of,
)

LATER = datetime.now(UTC) + timedelta(days=1)
KEY = "sk_live_0123456789abcdef"


class NoSuchOrder(Permanent):
    """An app's own error."""


@pytest.mark.parametrize(
    ("error", "event", "after", "until"),
    [
        (ValueError("it broke"), Event.FAIL, None, None),
        (SystemExit(3), Event.FAIL, None, None),
        (Retry("the shelf is empty", after=3600), Event.FAIL, 3600, None),
        (Permanent("no such order"), Event.GIVE_UP, None, None),
        (NoSuchOrder("no such order"), Event.GIVE_UP, None, None),
        (Snooze(LATER), Event.SNOOZE, None, LATER),
        (CancelRequested(7), Event.CANCELLED, None, None),
        (LeaseLost(7, 1), None, None, None),
    ],
)
def test_an_error_means_one_event_also_on_the_other_side_of_a_channel(
    error: BaseException, event: Event | None, after: float | None, until: datetime | None
) -> None:
    meant = error_of(error)
    assert (meant.event, meant.after, meant.until) == (event, after, until)
    assert (meant.failure.error, meant.failure.error_type) == (str(error), type(error).__name__)
    assert meant.failure.permanent == isinstance(error, Permanent)
    assert AttemptError.unpacked(json.loads(json.dumps(meant.packed()))) == meant


@pytest.mark.parametrize(
    "result",
    [
        AttemptResult(),
        AttemptResult('{"sum": 7}'),
        AttemptResult(finished=True),
        AttemptResult(error=error_of(ValueError("it broke"))),
    ],
)
def test_a_result_crosses_from_a_child_process_unchanged(result: AttemptResult) -> None:
    assert AttemptResult.unpacked(json.loads(json.dumps(result.packed()))) == result


def test_an_error_without_words_is_told_by_its_type() -> None:
    assert failure_of(ValueError()).error == "ValueError"


@pytest.mark.parametrize("before", range(ERROR_CHARACTERS - len(KEY), ERROR_CHARACTERS + 1))
def test_no_cut_leaves_half_a_secret(before: int) -> None:
    failure = failure_of(ValueError("x" * (before - 1) + " " + KEY))
    assert len(failure.error) <= ERROR_CHARACTERS
    assert "0123" not in failure.error


@pytest.mark.parametrize("behind", range(STACK_CHARACTERS - len(KEY), STACK_CHARACTERS + 1))
def test_no_cut_leaves_half_a_secret_at_the_head_of_a_stack(behind: int) -> None:
    failure = failure_of(ValueError("it broke"), stack=f"{KEY} " + "x" * behind)
    assert failure.stack is not None
    assert len(failure.stack) <= STACK_CHARACTERS
    assert "cdef" not in failure.stack


def test_what_a_secret_was_hidden_with_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "hush-hush")
    assert failure_of(ValueError("hush\0-hush")).error == "***"


def test_what_a_handler_asks_for_is_checked_where_it_asks() -> None:
    with pytest.raises(TypeError, match=r"Retry\(after='soon'\) must be a number of seconds"):
        Retry(after="soon")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Snooze\(until=3\) must be a time"):
        Snooze(3)  # type: ignore[arg-type]
    for never in (math.nan, math.inf, 1e18, -1):
        with pytest.raises(ValueError, match="from 0 to 31622400 seconds"):
            Retry(after=never)
    with pytest.raises(ValueError, match="needs a time with an offset"):
        Snooze(datetime(2030, 1, 1))
    with pytest.raises(ValueError, match="more than a year away"):
        Snooze(datetime.now(UTC) + timedelta(days=367))


def test_a_snooze_until_a_time_that_has_come_by_this_machines_clock_is_left_to_the_database() -> None:
    error = error_of(Snooze(datetime.now(UTC) - timedelta(hours=1)))
    assert error.event is Event.SNOOZE
