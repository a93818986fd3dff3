"""A screen answers while any table is locked, and beside writers and a stuck worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import flask
import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.schema.tables import metadata
from tests.page.addresses import addresses
from tests.page.filled import Filled
from tests.page.visits import Visit
from tests.support.processes import wait_until

WRITERS = 4

# They are for messages.
UNREAD = {"rowcall.incidents", "rowcall.alert_checks", "rowcall.pings"}

# Table -> the beginnings of the only screens that need it: a request key is looked up to find its run.
ONLY_FOR = {"rowcall.request_keys": ("/find?", "/runs?key=")}

# What a missing part says.
GAP = "database did not return this part"


def set_limits(monkeypatch: pytest.MonkeyPatch, part: float, screen: float) -> None:
    """Set how long a part and a screen may take."""
    monkeypatch.setattr("rowcall_api.page.reading.PART_SECONDS", part)
    monkeypatch.setattr("rowcall_api.page.reading.SCREEN_SECONDS", screen)


@pytest.mark.parametrize("table", sorted(metadata.tables))
def test_with_a_table_locked_each_screen_says_what_is_missing_and_is_whole_again_afterwards(
    app: flask.Flask, visit: Visit, filled: Filled, module_url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed_by = () if table in UNREAD else ONLY_FOR.get(table, ("",))
    gaps = []
    with database.transaction(module_url) as holder:
        fetch_all(holder, f"LOCK TABLE {table}")
        for path in addresses(app, filled):
            # Other screens have a gap only if they wait for the lock, however busy the machine is.
            part, whole = (0.2, 0.5) if path.startswith(needed_by) else (60, 120)
            set_limits(monkeypatch, part, whole)
            screen = visit.get(path)
            assert screen.status in {200, 404, 503}, (path, screen.text)
            assert screen.response.mimetype == "text/html"
            if screen.status == 503 or GAP in screen.text:
                gaps.append(path)
    assert bool(gaps) is (table not in UNREAD)
    assert [path for path in gaps if not path.startswith(needed_by)] == []
    wait_until(lambda: GAP not in visit.get().text, "the overview is whole")


def test_beside_writers_and_a_stuck_worker_every_screen_is_whole(
    app: flask.Flask, visit: Visit, filled: Filled, module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that only waiting for a lock would end in a gap, however busy the machine is.
    set_limits(monkeypatch, part=60, screen=120)
    with writers(module_url), database.transaction(module_url) as stuck:
        fetch_all(stuck, "UPDATE rowcall.job_runs SET updated_at = now()")
        for path in addresses(app, filled):
            screen = visit.get(path)
            assert screen.status == (404 if path == "/nowhere" else 200), (path, screen.text)
            assert GAP not in screen.text, path


@contextmanager
def writers(url: str) -> Iterator[None]:
    """Enqueue runs on several connections during the block."""
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            with database.transaction(url) as connection:
                queue.enqueue_many(connection, "noop", [{"user_id": number} for number in range(100)])

    threads = [threading.Thread(target=write) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
