"""What a screen shows when the database is slow, busy or gone, and by whose clock."""

from __future__ import annotations

import flask
import pytest

from rowcall.access import api_keys
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.status import Status
from rowcall_api.app import create_app
from rowcall_api.page.blueprint import here
from tests.api.conftest import let_nobody_in
from tests.page.conftest import MAKER, Browse
from tests.page.visits import Visit
from tests.support.rows import run_in


def test_times_are_relative_to_the_databases_clock(
    app: flask.Flask, browse: Browse, committed: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_in(committed, Status.DEAD, finished_at="now() - interval '3 hours'")["id"]
    monkeypatch.setattr("rowcall_api.page.words.datetime", None)
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
    assert screen.text.count("the database did not answer this part") + screen.text.count("The database did not") == 1
    assert "Next schedules" in screen.text
    assert "did not answer" not in visit.get().text


def test_the_page_answers_while_all_connections_of_the_api_are_busy(app: flask.Flask, browse: Browse) -> None:
    visit = browse("read")
    pool = app.extensions["database"]
    held = [pool.connect() for _ in range(pool.pool.size())]
    assert visit.get("/runs").status == 200
    for one in held:
        one.close()


def test_without_the_database_the_page_says_so(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        key = api_keys.create_key(connection, "reader", ["read"], MAKER)
    app = create_app(fresh_url)
    visit = Visit(app, key)
    let_nobody_in(fresh_url)
    refused = visit.get("/runs")
    assert (refused.status, "The database cannot be reached" in refused.text) == (503, True)
    assert refused.response.mimetype == "text/html"
    for pool in ("database", "page_pool"):
        app.extensions[pool].dispose()


def test_the_link_to_the_next_page_keeps_any_query_and_stays_on_this_site(app: flask.Flask) -> None:
    with app.test_request_context("/admin/runs?_scheme=javascript&_external=1&endpoint=x&done=retry&status=a&status=b"):
        there, fewer = here(cursor="c"), here(status=None)
    assert there == "/admin/runs?_scheme=javascript&_external=1&endpoint=x&status=a&status=b&cursor=c"
    assert fewer == "/admin/runs?_scheme=javascript&_external=1&endpoint=x"
