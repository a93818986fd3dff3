"""`run.log`: a standard logger whose lines are kept with the run, in bounds and as the database can store them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from rowcall.base.redaction import SEARCHED_CHARACTERS
from rowcall.queue.run_log import BYTES_MOST, LINES_MOST
from rowcall.status import Status
from rowcall_worker.attempt.context import Run
from rowcall_worker.attempt.run_log import MESSAGE_CHARACTERS, TRACEBACK_CHARACTERS, LogBuffer
from tests.support.logged import logged
from tests.worker.desk import Desk


@pytest.fixture
def desk(fresh_url: str) -> Iterator[Desk]:
    desk = Desk(fresh_url)
    yield desk
    desk.link.close()
    desk.heart.link.close()


def fail(text: str) -> None:
    raise ValueError(text)


def third_party(logger: logging.Logger) -> None:
    """Log as a library that is given a logger does."""
    child = logger.getChild("library")
    child.warning("%(name)s is %(state)s", {"name": "cache", "state": "cold"})
    logging.LoggerAdapter(logger, {"shard": 3}).info("connected")
    logger.log(logging.CRITICAL, "out of paper")


def test_it_is_a_standard_logger(desk: Desk) -> None:
    def handler(run: Run) -> None:
        run.log.info("sent %d of %s", 3, "mails")
        run.log.info("packed", boxes=3, to="Ada L")
        third_party(run.log)

    desk.attempt(handler)
    desk.end()
    assert desk.log == [
        ("info", "sent 3 of mails"),
        ("info", "packed boxes=3 to='Ada L'"),
        ("warning", "cache is cold"),
        ("info", "connected shard=3"),
        ("error", "out of paper"),
    ]


@pytest.mark.parametrize("name", ["msg", "args", "level", "self", "name", "message", "event", "exc_text", "lineno"])
def test_a_field_may_have_any_name_that_is_no_option_of_a_standard_logger(desk: Desk, name: str) -> None:
    def handler(run: Run) -> None:
        for write in (run.log.info, run.log.warning, run.log.error, run.log.critical, run.log.fatal):
            write("packed %d", 3, **{name: "x"})
        run.log.log(logging.INFO, "packed %d", 3, **{name: "x"})
        run.log.exception("packed %d", 3, **{name: "x"}, exc_info=False)

    assert desk.attempt(handler).error is None
    desk.end()
    assert [text for _, text in desk.log] == [f"packed 3 {name}=x"] * 7


def test_every_method_names_the_line_of_its_caller(desk: Desk) -> None:
    records: list[logging.LogRecord] = []

    class Listener(logging.Handler):
        emit = staticmethod(records.append)  # type: ignore[assignment]

    def handler(run: Run) -> None:
        run.log.addHandler(Listener())
        for write in (run.log.info, run.log.warning, run.log.error, run.log.exception, run.log.critical, run.log.fatal):
            write("packed")
        run.log.log(logging.INFO, "packed")
        logging.LoggerAdapter(run.log, {}).info("packed")

    desk.attempt(handler)
    assert [record.funcName for record in records] == ["handler"] * 8


def test_a_handler_that_is_added_to_it_gets_the_records_with_the_caller_s_place(desk: Desk) -> None:
    records: list[logging.LogRecord] = []

    class Listener(logging.Handler):
        emit = staticmethod(records.append)  # type: ignore[assignment]

    def handler(run: Run) -> None:
        run.log.addHandler(Listener())
        run.log.info("packed", extra={"boxes": 3})

    desk.attempt(handler)
    assert [(record.getMessage(), record.funcName, record.__dict__["boxes"]) for record in records] == [
        ("packed", "handler", 3)
    ]


def test_an_exception_is_kept_with_its_traceback_and_without_secrets(desk: Desk) -> None:
    def handler(run: Run) -> None:
        try:
            fail("postgresql://me:hush@db/shop did not answer")
        except ValueError:
            run.log.exception("order %d with token=hush-hush", 7)

    desk.attempt(handler)
    desk.end()
    [(level, text)] = desk.log
    first, second, *_, last = text.splitlines()
    assert (level, first, second) == ("error", "order 7 with token=***", "Traceback (most recent call last):")
    assert last == "ValueError: postgresql://me:***@db/shop did not answer"


class Unspeakable:
    """Raises an error when it is shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "say",
    [
        lambda log: log.info("%d orders", "three"),
        lambda log: log.info("%s", Unspeakable()),
        lambda log: log.info("packed", box=Unspeakable()),
    ],
    ids=["wrong arguments", "an argument without words", "a field without words"],
)
def test_a_line_that_cannot_be_shown_ends_no_attempt(desk: Desk, say: Callable[[logging.Logger], None]) -> None:
    assert desk.attempt(lambda run: say(run.log)).error is None
    desk.end()
    [(level, text)] = desk.log
    assert level == "info"
    assert "test_run_log.py" in text
    assert "logged a message that cannot be formatted" in text


def test_text_that_the_database_cannot_store_loses_neither_the_line_nor_the_end(desk: Desk) -> None:
    desk.attempt(lambda run: run.log.info("nul \0, half \ud800, escape \x1b[31m, \u2028"))
    desk.end()
    assert desk.log == [("info", "nul , half ?, escape \x1b[31m, \u2028")]
    assert desk.status == Status.SUCCEEDED


def test_long_lines_are_cut_and_say_so(desk: Desk) -> None:
    def handler(run: Run) -> None:
        run.log.info("é" * 1_000_000)
        try:
            fail("x" * 100_000 + "the end")
        except ValueError:
            run.log.exception("broken")

    desk.attempt(handler)
    desk.end()
    (_, long), (_, broken) = desk.log
    assert (len(long), long[-2:]) == (MESSAGE_CHARACTERS, "é…")
    message, trace = broken.split("\n")
    assert (message, len(trace), trace[:2], trace[-7:]) == ("broken", TRACEBACK_CHARACTERS, "…x", "the end")


def test_a_line_of_many_megabytes_is_cut_before_it_is_searched_for_secrets(desk: Desk) -> None:
    with logged() as lines:
        desk.attempt(lambda run: run.log.info("x" * 10_000_000, data="y" * 10_000_000))
    assert max(len(lines[0][name]) for name in ("event", "data")) < SEARCHED_CHARACTERS


def test_of_a_flood_the_newest_lines_are_kept_and_the_numbers_say_how_many_are_missing(desk: Desk) -> None:
    def handler(run: Run) -> None:
        for number in range(1, 3 * LINES_MOST + 1):
            run.log.info("line %d", number)

    desk.attempt(handler)
    desk.end()
    kept = range(2 * LINES_MOST + 1, 3 * LINES_MOST + 1)
    assert [text for _, text in desk.log] == [f"line {number}" for number in kept]
    assert desk.sql("SELECT min(line_no) AS first FROM rowcall.run_logs WHERE run_id = %(run_id)s") == [
        {"first": 2 * LINES_MOST + 1}
    ]


def test_what_waits_to_be_written_is_bounded_in_bytes() -> None:
    buffer = LogBuffer()
    for _ in range(LINES_MOST):
        buffer.add("info", "é" * MESSAGE_CHARACTERS)
    assert BYTES_MOST - 2 * MESSAGE_CHARACTERS < sum(len(line.text.encode()) for line in buffer.unwritten) <= BYTES_MOST


@pytest.mark.parametrize(("level", "kept"), [("debug", 2), ("info", 1), ("error", 1)])
def test_lines_below_info_are_kept_only_if_the_process_logs_them(desk: Desk, level: str, kept: int) -> None:
    def handler(run: Run) -> None:
        run.log.debug("fine print")
        run.log.info("print")

    with logged(level):
        desk.attempt(handler)
    desk.end()
    assert len(desk.log) == kept


def test_a_line_also_goes_to_the_log_of_the_process(desk: Desk) -> None:
    with logged() as lines:
        desk.attempt(lambda run: run.log.info("packed %s", "it", boxes=3, run_id=0))
    run_id, lease_no = desk.run.lease[1:]
    assert [{name: line[name] for name in ("event", "level", "run_id", "lease_no", "boxes")} for line in lines] == [
        {"event": "packed it", "level": "info", "run_id": run_id, "lease_no": lease_no, "boxes": 3}
    ]
