"""Screens that wait for the database leave threads to the API's other requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rowcall.access.api_keys import find_caller
from rowcall.access.page_sessions import begin_session
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import DatabaseUnavailable
from rowcall_api.page.access import COOKIE
from rowcall_api.page.reading import CONNECTIONS
from rowcall_api.page.slots import BUSY, Slots
from tests.api.serving import Server, request

TABS = 12


def test_with_the_runs_locked_a_few_screens_wait_and_the_others_are_refused(
    server: Server, committed: PgConnection, module_url: str, keys: dict[str, str]
) -> None:
    caller = find_caller(committed, keys["read"])
    assert caller is not None
    overview = request("GET", "/admin", keys["read"], f"Cookie: {COOKIE}={begin_session(committed, caller)}")
    with ThreadPoolExecutor(TABS) as tabs, database.transaction(module_url) as holder:
        database.fetch_all(holder, "LOCK TABLE rowcall.job_runs")
        answers = [tabs.submit(server.ask, overview) for _ in range(TABS)]
        assert server.ask(request("GET", "/v1/job-types", keys["read"])).status == 200
        heard = [answer.result() for answer in answers]
    read = [one for one in heard if one.status == 200]
    refused = [one for one in heard if one.status == 503]
    assert len(read) + len(refused) == TABS
    assert len(refused) >= TABS - 2 * CONNECTIONS
    assert all(b"did not return this part" in one.body for one in read)
    assert all(BUSY[1:].encode() in one.body and int(one.headers["Retry-After"]) > 0 for one in refused)
    assert server.ask(overview).status == 200


def test_a_screen_waits_for_a_slot_while_the_others_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowcall_api.page.slots.SLOW_SECONDS", 600)
    slots, first, second = Slots(1), object(), object()
    slots.take(first)
    with ThreadPoolExecutor(1) as thread:
        taken = thread.submit(slots.take, second)
        slots.give_back(first)
        assert taken.result() is None


def test_a_screen_is_refused_at_once_while_another_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowcall_api.page.slots.SLOW_SECONDS", 0)
    slots, slow, refused = Slots(1), object(), object()
    slots.take(slow)
    with pytest.raises(DatabaseUnavailable):
        slots.take(refused)
    slots.give_back(refused)
    with pytest.raises(DatabaseUnavailable):
        slots.take(refused)
    slots.give_back(slow)
    slots.take(refused)
