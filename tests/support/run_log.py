"""The logs of runs, for tests: lines to write, and what is kept."""

from __future__ import annotations

from collections.abc import Iterable

from rowcall import queue
from rowcall.base.clock import elapsed
from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue import Lease, LogLine
from tests.support.rows import WORKER


def lease_of(run: Row) -> Lease:
    """Return the lease that the run's row shows."""
    return Lease(run["locked_by"] or WORKER, run["id"], run["lease_no"])


def lines(*texts: str, first: int = 1) -> list[LogLine]:
    """Return lines that were logged now, numbered from `first`."""
    return [LogLine(number, elapsed(), "info", text) for number, text in enumerate(texts, first)]


def texts(connection: Connection, run_id: int) -> list[str]:
    """Return the texts of the lines that are kept, the oldest first."""
    return [line["text"] for line in queue.log_end(connection, run_id, 2000)]


def insert_lines(connection: Connection, run_id: int, numbers: Iterable[int], text: str = "line ") -> None:
    """Insert lines of lease 1 with these numbers, each with its number in its text."""
    sql = """
    INSERT INTO rowcall.run_logs (run_id, line_no, lease_no, lease_line_no, logged_at, level, text)
    SELECT %(run_id)s, number, 1, number, now(), 'info', %(text)s || number
    FROM unnest(%(numbers)s::integer[]) AS number
    """
    fetch_all(connection, sql, {"run_id": run_id, "numbers": list(numbers), "text": text})
