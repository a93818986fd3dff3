"""Log lines: JSON for programs, text for people, with what the context has bound."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from rowcall.base import logs
from rowcall.base.logs import LogEvent, log
from rowcall.base.settings import Settings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def test_elsewhere_than_on_a_terminal_a_line_is_json_with_what_is_bound() -> None:
    stream = io.StringIO()
    logs.configure(Settings(), stream)
    token = logs.RUN.set((7, 2))
    with structlog.contextvars.bound_contextvars(request_id="abc"):
        log().info(LogEvent.RUN_FAILED, error="it broke")
    logs.RUN.reset(token)
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


def test_on_a_terminal_a_line_is_text() -> None:
    stream = Terminal()
    logs.configure(Settings(), stream)
    log().info(LogEvent.RUN_FAILED, error="it broke")
    assert "run failed" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


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
    log().error(LogEvent.API_BROKE, exc_info=broke, told={"answers": ["password=hush"]}, error=OSError("token=hush"))
    written = stream.getvalue()
    assert "hush" not in written
    assert written.count("***") >= 3
    assert "ValueError: no connection" in written
