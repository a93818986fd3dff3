"""What a screen reads is bounded: with many times as many runs, it reads no more blocks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import flask
import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import Connection, Row, fetch_all
from rowcall.queue.failures.count import count_failures
from tests.page.addresses import addresses
from tests.page.burning.conftest import SOME, add_runs, blocks
from tests.page.filled import Filled
from tests.page.visits import Visit

# More of everything than a screen counts or looks through; then five times as many.
FEW = 45_000
MANY = 5 * FEW

# With these, the table has more blocks than a screen may read beyond what it read before.
ENOUGH_TO_NOTICE = 10_000

# An index with one more level, and pages that are less full.
GROWS = 1.4
MORE_BLOCKS = 20


def test_no_screen_reads_more_with_five_times_as_many_runs_whatever_the_planner_knows(
    app: flask.Flask, visit: Visit, filled: Filled, module_url: str
) -> None:
    grow(module_url, SOME, FEW)
    know(module_url)
    few = measured(app, visit, filled, module_url)
    grow(module_url, FEW, MANY)
    assert few[""] > 100
    assert grown(few, measured(app, visit, filled, module_url)) == {}
    know(module_url)
    assert grown(few, measured(app, visit, filled, module_url)) == {}


def test_a_scan_of_all_runs_on_a_screen_is_noticed(
    app: flask.Flask,
    visit: Visit,
    filled: Filled,
    module_url: str,
    committed: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grow(module_url, SOME, ENOUGH_TO_NOTICE)

    def scanned(connection: Connection, run_id: int) -> Row:
        fetch_all(connection, "SELECT count(*) FROM rowcall.job_runs WHERE progress IS NOT NULL")
        return get_run(connection, run_id)

    get_run, path = queue.get_run, f"/runs/{filled.dead}"
    few = blocks(app, visit, path, committed)
    monkeypatch.setattr(queue, "get_run", scanned)
    assert grown({path: few}, {path: blocks(app, visit, path, committed)}) != {}


def grow(url: str, first: int, last: int) -> None:
    """Add runs up to this number, and count their failures."""
    with closing(database.connect(url)) as connection:
        connection.autocommit = True
        add_runs(connection, first, last)
        while count_failures(connection):
            pass


def know(url: str) -> None:
    """Let the planner know what is in the tables."""
    with closing(database.connect(url)) as connection:
        connection.autocommit = True
        fetch_all(connection, "VACUUM ANALYZE")


def measured(app: flask.Flask, visit: Visit, filled: Filled, url: str) -> dict[str, int]:
    """Return how many blocks each screen reads."""
    with closing(database.connect(url)) as connection:
        connection.autocommit = True  # within one transaction, statistics do not change
        return {path: blocks(app, visit, path, connection) for path in addresses(app, filled)}


def grown(few: Mapping[str, int], many: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the screens that read more than before."""
    return {path: (few[path], many[path]) for path in few if many[path] > GROWS * few[path] + MORE_BLOCKS}
