"""Handlers that raise or return what cannot be read or stored: the run is settled, and its thread survives."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest

from rowcall.base.clock import elapsed
from rowcall.base.errors import Permanent, Retry, Snooze
from rowcall.base.settings import read
from rowcall.base.watched import Answers
from rowcall.queue import Claimed
from rowcall.status import Event
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.context import Run
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult, error_of
from rowcall_worker.attempt.runner import Runner
from rowcall_worker.runtime.executor import Attempt, Executor
from rowcall_worker.runtime.in_flight import InFlight
from tests.support.processes import rowcall, wait_until
from tests.support.shop import Shop

# These handlers do not use the database.
NOWHERE = Connections("", Answers())


class Unspeakable(Exception):
    """An error whose message cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("not even this")

    __repr__ = __str__


class Worse(BaseException):
    """An error whose message raises another such error."""

    def __str__(self) -> str:
        raise Unspeakable

    __repr__ = __str__


class Nameless(type):
    """A type whose name cannot be read."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Anonymous(Exception, metaclass=Nameless):
    """An error of such a type."""


class Careless(Retry):
    """An app's own error, which does not call its base's __init__."""

    def __init__(self) -> None:
        Exception.__init__(self, "careless")


class CarelessSnooze(Snooze):
    """The same for a snooze."""

    def __init__(self) -> None:
        Exception.__init__(self, "careless")


class Timeless(tzinfo):
    """A time zone that raises."""

    def utcoffset(self, _: datetime | None) -> None:
        raise RuntimeError("what is time")

    dst = tzname = utcoffset


class Mutinous(dict[str, str]):
    """A result that raises when it is serialized."""

    def items(self) -> Any:
        raise KeyboardInterrupt


def snooze_until(moment: Any) -> Snooze:
    """Return a snooze whose time was changed after it was checked."""
    error = Snooze(datetime.now(UTC))
    error.until = moment
    return error


def retry_after(seconds: Any) -> Retry:
    """Return a retry whose delay was changed after it was checked."""
    error = Retry()
    error.after = seconds
    return error


RAISED: list[tuple[str, Callable[[], BaseException]]] = [
    ("words that raise", Unspeakable),
    ("words that raise such an error", Worse),
    ("a cause without words", lambda: caused(ValueError("told"), Unspeakable())),
    ("notes that raise", lambda: noted(ValueError("told"), Unspeakable())),
    ("a type without a name", Anonymous),
    ("a retry that does not say when", Careless),
    ("a retry after no number", lambda: retry_after(math.nan)),
    ("a retry after for ever", lambda: retry_after(math.inf)),
    ("a retry long ago", lambda: retry_after(-1e300)),
    ("a snooze that does not say until when", CarelessSnooze),
    ("a snooze until no time", lambda: snooze_until("tomorrow")),
    ("a snooze until a time of no zone", lambda: snooze_until(datetime(2030, 1, 1))),
    ("a snooze until a time of a broken zone", lambda: snooze_until(datetime(2030, 1, 1, tzinfo=Timeless()))),
    ("a generator's exit", GeneratorExit),
]


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def noted(error: BaseException, note: object) -> BaseException:
    error.__notes__ = [note]  # type: ignore[list-item]
    return error


def attempted(in_flight: InFlight, number: int) -> AttemptResult:
    """Return the result of an attempt at the run with this number, which a thread makes."""
    run = InFlightRun("worker-1", Claimed(number, 1, "noop", {}, 1, 10, None), elapsed() + 60)
    in_flight.accept(0, [run])
    wait_until(lambda: run.settled, "a thread has settled the run")
    [ended] = in_flight.collect()
    assert ended is run
    return run.result


@pytest.mark.parametrize("makes", [makes for _, makes in RAISED], ids=[name for name, _ in RAISED])
def test_whatever_a_handler_raises_fails_its_run_and_the_next_one_is_begun(makes: Callable[[], BaseException]) -> None:
    in_flight = InFlight(threads=1)

    def handler(run: Run) -> object:
        if run.id == 1:
            raise makes()
        return {"well": True}

    Executor(in_flight, {"noop": Runner.of({"noop": handler}, NOWHERE, read()).attempt})
    error = attempted(in_flight, 1).error
    assert error is not None
    assert error.event is Event.FAIL
    assert error.failure.error
    assert error.failure.error_type
    assert "test_unspeakable.py" in (error.failure.stack or "")
    assert error == AttemptResult.unpacked(AttemptResult(error=error).packed()).error
    assert attempted(in_flight, 2).value == '{"well": true}'


@pytest.mark.parametrize("value", [Mutinous(a="b"), {"a": Mutinous(a="b")}, math.nan, {1, 2}])
def test_whatever_a_handler_returns_settles_its_run_and_the_next_one_is_begun(value: object) -> None:
    in_flight = InFlight(threads=1)
    Executor(
        in_flight,
        {"noop": Runner.of({"noop": lambda run: value if run.id == 1 else None}, NOWHERE, read()).attempt},
    )
    assert attempted(in_flight, 1).error is not None
    assert attempted(in_flight, 2) == AttemptResult()


def test_an_error_outside_of_the_handler_ends_its_run_alone() -> None:
    in_flight = InFlight(threads=1)
    attempt: Attempt = Runner.of({}, NOWHERE, read()).attempt
    Executor(in_flight, {"other": attempt})
    for number in (1, 2):
        error = attempted(in_flight, number).error
        assert error is not None
        assert error.failure.error_type == "KeyError"


def test_an_error_whose_message_cannot_be_read_is_named_by_its_type() -> None:
    told = error_of(Unspeakable()).failure
    assert (told.error, told.error_type) == ("(its message cannot be read)", "Unspeakable")


def test_words_without_end_are_cut_before_they_are_searched_for_secrets() -> None:
    failure = error_of(Permanent("word " * 20_000_000)).failure
    assert failure.error.startswith("word word")


@pytest.mark.parametrize("job_type", ["shop_pack", "shop_isolated"])
def test_a_worker_fails_a_run_whose_error_cannot_be_told_and_does_the_others(
    environment: dict[str, str], fresh_url: str, job_type: str
) -> None:
    shop = Shop(environment, fresh_url)
    runs = [shop.ask(job_type, ends="unspeakable") for _ in range(2)]
    [other] = shop.ask_many("noop", [{}], run_at="infinity")
    shop.sql("UPDATE rowcall.job_runs SET max_attempts = 1 WHERE job_type = %(job_type)s", job_type=job_type)
    shop.sql("UPDATE rowcall.job_runs SET run_at = now() WHERE id = %(id)s", id=other)
    worked = rowcall(shop.environment, "worker", "once", "--concurrency", "1")
    assert "claimed 3, succeeded 1, failed 0, dead 2" in worked.stdout
    assert {shop.row(run_id)["error_type"] for run_id in runs} == {"Unspeakable"}
    assert Path(__file__).name not in worked.stderr
