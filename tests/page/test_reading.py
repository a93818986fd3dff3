"""What a screen shows when the database is slow, busy or gone, and by whose clock."""

from __future__ import annotations

import re
from datetime import datetime

import flask
import pytest

from rowcall import queue
from rowcall.access import api_keys
from rowcall.base import database
from rowcall.base.database import Connection, PgConnection, fetch_all
from rowcall.base.jsonb import stored
from rowcall.status import Status
from rowcall_api.app import create_app
from rowcall_api.page.blueprint import here
from rowcall_api.page.reading import PART_SECONDS, Part, part
from rowcall_api.page.words import dated
from tests.api.conftest import let_nobody_in
from tests.page.conftest import MAKER, Browse
from tests.page.visits import Visit
from tests.support.connections import disconnect
from tests.support.rows import run_in
from tests.support.silence import network
from tests.support.slow_search import SLOW, fill


def test_times_are_relative_to_the_databases_clock(
    app: flask.Flask, browse: Browse, committed: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_in(committed, Status.DEAD, finished_at="now() - interval '3 hours'")["id"]
    monkeypatch.setattr("rowcall_api.page.words.datetime", type("Clockless", (datetime,), {"now": None}))
    assert "3 h ago" in browse("read").get(f"/runs/{run_id}").text


def test_a_part_that_the_database_does_not_answer_in_time_leaves_a_gap(
    browse: Browse, committed: PgConnection, module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowcall_api.page.reading.PART_SECONDS", 0.3)
    visit = browse("read")
    with database.transaction(module_url) as holder:
        database.fetch_all(holder, "LOCK TABLE rowcall.failure_counts")
        screen = visit.get()
    assert screen.status == 200
    assert screen.text.count("the database did not return this part") + screen.text.count("The database did not") == 1
    assert "Next scheduled runs" in screen.text
    assert "did not answer" not in visit.get().text


def test_all_statements_of_a_part_share_its_time(app: flask.Flask) -> None:
    ended = []

    def several(connection: Connection) -> None:
        for _ in range(4):
            fetch_all(connection, "SELECT pg_sleep(0.7)")
            ended.append(1)

    with app.test_request_context("/admin"):
        assert "did not return this part" in str(part(several).missing)
        assert len(ended) < PART_SECONDS / 0.7
        assert part(fetch_all, "SHOW statement_timeout") == Part([{"statement_timeout": "2s"}])


def test_a_search_gets_no_more_time_than_its_part(
    browse: Browse, committed: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowcall_api.page.reading.PART_SECONDS", 0.3)
    fill(committed)
    screen = browse("read").get("/runs", payload=stored(SLOW))
    assert (screen.status, "longer than 0.3 seconds and was stopped: narrow it" in screen.text) == (200, True)


def test_operators_sign_in_see_and_steer_while_all_connections_of_the_api_are_busy(
    app: flask.Flask, browse: Browse, committed: PgConnection
) -> None:
    run_id = run_in(committed, Status.DEAD)["id"]
    pool = app.extensions["database"]
    held = [pool.connect() for _ in range(pool.pool.size())]
    visit = browse()
    assert visit.get("/runs").status == 200
    assert "The run is queued again" in visit.send(f"/runs/{run_id}", f"Retry run {run_id}").text
    for one in held:
        one.close()


def test_a_silent_network_holds_a_screen_only_for_a_moment(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowcall_api.page.reading.ANSWER_SECONDS", 0.5)
    with database.transaction(fresh_url) as connection:
        key = api_keys.create_key(connection, "reader", ["read"], MAKER)
    with network(fresh_url) as between:
        app = create_app(between.url)
        visit = Visit(app, key)
        assert visit.get("/runs").status == 200
        between.fall_silent()
        assert visit.get("/runs").status in {200, 503}
        assert visit.get("/runs").status == 200
        disconnect(app)


def test_without_the_database_the_page_says_so(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        key = api_keys.create_key(connection, "reader", ["read"], MAKER)
    app = create_app(fresh_url)
    visit = Visit(app, key)
    let_nobody_in(fresh_url)
    refused = visit.get("/runs")
    assert (refused.status, "The database cannot be reached" in refused.text) == (503, True)
    assert refused.response.mimetype == "text/html"
    disconnect(app)


def test_the_link_to_the_next_page_keeps_any_query_and_stays_on_this_site(app: flask.Flask) -> None:
    with app.test_request_context("/admin/runs?_scheme=javascript&_external=1&endpoint=x&done=retry&status=a&status=b"):
        there, fewer = here(cursor="c"), here(status=None)
    assert there == "/admin/runs?_scheme=javascript&_external=1&endpoint=x&status=a&status=b&cursor=c"
    assert fewer == "/admin/runs?_scheme=javascript&_external=1&endpoint=x"


def test_the_times_in_a_sentence_are_marked_for_the_readers_zone_and_nothing_else_becomes_html() -> None:
    told = "queue <b> is paused since 2026-03-29 01:00:00.25+02:00; it said 2026-99-99 99:99:99+00:00"
    marked = '<time datetime="2026-03-29T01:00:00.250000+02:00">2026-03-28 23:00:00 UTC</time>'
    assert dated(told) == f"queue &lt;b&gt; is paused since {marked}; it said 2026-99-99 99:99:99+00:00"


def test_the_headline_and_a_run_tell_times_that_a_reader_can_convert(browse: Browse, committed: PgConnection) -> None:
    late = run_in(committed, Status.QUEUED, queue="'held'", run_at="now() - interval '20 minutes'")["id"]
    queue.pause_queue(committed, "held", MAKER)
    for path in ("", "/queues/held", f"/runs/{late}"):
        assert re.search(r'paused since <time datetime="[^"]+">[-\d]+ [:\d]+ UTC</time>', browse("read").get(path).html)
