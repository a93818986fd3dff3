"""Log lines: JSON for programs, text for people, with the bound fields."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rowcall.base import logs
from rowcall.base.logs import LogEvent, log
from rowcall.base.redaction import SEARCHED_CHARACTERS
from rowcall.base.settings import Settings
from tests.support.logged import logged


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    yield
    logs.use(logs.Log())


def test_elsewhere_than_on_a_terminal_a_line_is_json_with_what_is_bound() -> None:
    stream = io.StringIO()
    logs.configure(Settings(), stream)
    run, request = logs.RUN.set((7, 2)), logs.REQUEST_ID.set("abc")
    log().info(LogEvent.RUN_FAILED, error="it broke")
    logs.RUN.reset(run)
    logs.REQUEST_ID.reset(request)
    log().info(LogEvent.WORKER_STOPPED)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "event": "run failed",
        "level": "info",
        "run_id": 7,
        "lease_no": 2,
        "request_id": "abc",
        "error": "it broke",
    }
    assert "run_id" not in second


def test_on_a_terminal_a_line_is_text_and_a_traceback_stands_below_it() -> None:
    stream = Terminal()
    logs.configure(Settings(), stream)
    try:
        int("many")
    except ValueError:
        log().error(LogEvent.RUN_FAILED, error="it broke", tries=3, exc_info=True)
    line, *below = stream.getvalue().splitlines()
    assert re.fullmatch(r"20\S+Z .*error .* run failed {15}error='it broke' tries=3", line)
    assert (below[0], below[-1]) == (
        "Traceback (most recent call last):",
        "ValueError: invalid literal for int() with base 10: 'many'",
    )


@pytest.mark.parametrize(
    ("name", "value", "coloured"), [("TERM", "xterm", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)]
)
def test_a_terminal_without_colours_gets_none(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    stream = Terminal()
    logs.configure(Settings(), stream)
    log().error(LogEvent.RUN_FAILED)
    assert ("\x1b[" in stream.getvalue()) is coloured


def test_a_setting_overrules_the_terminal() -> None:
    stream = Terminal()
    logs.configure(Settings(log_format="json"), stream)
    log().info(LogEvent.RUN_FAILED)
    assert json.loads(stream.getvalue())["event"] == "run failed"


def test_what_is_below_the_level_is_not_written() -> None:
    stream = io.StringIO()
    logs.configure(Settings(log_level="warning"), stream)
    log().info(LogEvent.WORKER_STARTED)
    log().warning(LogEvent.LEASE_LOST)
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["lease lost"]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["json", "text"])
def test_no_line_holds_a_secret_wherever_in_it_that_may_be(stream: io.StringIO) -> None:
    logs.configure(Settings(), stream)
    broke = ValueError("no connection to postgresql://me:hush@db/app")
    log().error(
        LogEvent.API_REQUEST_FAILED, exc_info=broke, told={"answers": ["password=hush"]}, error=OSError("token=hush")
    )
    written = stream.getvalue()
    assert "hush" not in written
    assert written.count("***") >= 3
    assert "ValueError: no connection" in written


def test_no_field_of_a_handlers_own_takes_the_place_of_what_every_line_has() -> None:
    with logged() as lines:
        log().info("sent", event="mine", level="high", to=["ada"])
    assert [(line["event"], line["level"], line["to"]) for line in lines] == [("sent", "info", ["ada"])]


def test_a_line_that_cannot_be_written_does_not_end_the_work_that_it_tells_of() -> None:
    with suppress(OSError), Path("/dev/full").open("w") as full:
        logs.configure(Settings(), full)
        log().info(LogEvent.WORKER_STARTED)
    assert full.closed
    log().info(LogEvent.WORKER_STOPPED)


def test_a_process_without_standard_error_logs_nothing_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    log().info(LogEvent.WORKER_STARTED)


def test_a_field_that_is_named_as_a_secret_is_not_shown() -> None:
    with logged() as lines:
        log().info("login", password="hunter2pw", user={"api_key": "abc", "name": "ada"}, token_count=3, token=None)  # noqa: S106 - it is the test's
    assert {name: lines[0][name] for name in ("password", "user", "token_count", "token")} == {
        "password": "***",
        "user": {"api_key": "***", "name": "ada"},
        "token_count": 3,
        "token": None,
    }


def test_data_that_contains_itself_and_numbers_that_json_has_not_are_shown() -> None:
    stream = io.StringIO()
    logs.configure(Settings(), stream)
    state: dict[str, object] = {}
    state["self"] = state
    log().info("state", state=state, numbers=[float("nan"), float("inf")])
    line = json.loads(stream.getvalue(), parse_constant=pytest.fail)
    assert "{'self': {...}}" in json.dumps(line["state"])
    assert line["numbers"] == ["nan", "inf"]


def test_an_event_of_several_lines_is_indented_as_text_and_controls_no_terminal() -> None:
    stream = Terminal()
    logs.configure(Settings(), stream)
    log().info("two\n\tlines \x1b[31m\a", told="a\n\tb")
    line, *below = stream.getvalue().splitlines()
    assert re.fullmatch(r"20\S+Z info    two {21} told='a\\n\\tb'", line)
    assert below == [r"        lines \x1b[31m\x07"]


def test_a_text_that_would_take_long_to_search_is_cut_before() -> None:
    many = 10_000_000
    with logged() as lines:
        log().info("x" * many, told="y" * many, values={"z": "z" * many})
        log().error(LogEvent.API_REQUEST_FAILED, exc_info=ValueError("v" * many + " the end"))
    long, broke = lines
    for text in (long["event"], long["told"], long["values"]["z"]):
        assert (len(text), text[-2:]) == (SEARCHED_CHARACTERS - logs.DIVIDED_CHARACTERS + 1, text[0] + logs.ELLIPSIS)
    assert len(broke["exception"]) < SEARCHED_CHARACTERS
    assert broke["exception"].endswith("v the end")


def test_a_cut_leaves_no_half_of_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hush" * 10
    monkeypatch.setenv("PGPASSWORD", secret)
    with logged() as lines:
        log().info("x" * (SEARCHED_CHARACTERS - 20) + secret)
    assert "hush" not in lines[0]["event"]
