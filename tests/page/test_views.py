"""Saved views: lists of runs with a name, which all operators share."""

from __future__ import annotations

import os
import re

import flask
import pytest

from rowcall.access import api_keys, page_views
from rowcall.access.caller import Limits
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from tests.page.conftest import MAKER, Browse
from tests.page.visits import Visit
from tests.support.processes import rowcall


def test_a_view_is_saved_for_all_operators_as_it_was_typed_and_removed(browse: Browse, committed: PgConnection) -> None:
    operator, reader = browse(), browse("read")
    address = "/runs?status=dead&created_after=5h+ago"
    assert "The view is saved, for all operators." in operator.send(address, "Save the view", name="died <today>").text
    seen = reader.get("/runs")
    assert "Saved views: died <today>" in seen.text
    [view] = [link for link in seen.links if "created_after=5h" in link]
    assert reader.get(view).forms["Filter"].fields["status"] == ["dead"]
    saved_by = "SELECT created_by FROM rowcall.page_views"
    assert "test operator" in database.fetch_value(committed, saved_by)
    assert "The view is removed." in operator.send(view, "Remove the view").text
    assert "Saved views" not in reader.get("/runs").text


def test_a_view_with_the_same_name_is_replaced(browse: Browse) -> None:
    operator = browse()
    for queue_name in ("default", "reports"):
        seen = operator.send(f"/runs?queue={queue_name}", "Save the view", name="mine")
    assert seen.text.count("Saved views: mine") == 1
    assert [link for link in seen.links if link.endswith("?queue=default")] == []
    operator.send("/runs?queue=reports", "Remove the view")


@pytest.mark.parametrize(
    ("name", "query"), [("", "queue=a"), ("x" * 61, "queue=a"), ("a\nb", "queue=a"), ("a", ""), ("a", "payload={")]
)
def test_a_view_without_a_name_or_filter_is_refused(browse: Browse, name: str, query: str) -> None:
    refused = browse().post(f"/runs/views?{query}", name=name)
    assert (refused.status, refused.response.mimetype) == (422, "text/html")


def test_there_are_no_more_views_than_can_be_shown(
    browse: Browse, committed: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_views, "VIEWS_MOST", 1)
    operator = browse()
    assert operator.post("/runs/views?queue=a", name="first").status == 200
    assert "remove one first" in operator.post("/runs/views?queue=b", name="second").text
    assert operator.post("/runs/views?queue=b", name="first").status == 200, "replaced"
    fetch_all(committed, "DELETE FROM rowcall.page_views")


@pytest.mark.parametrize("path", ["/runs/views?queue=a", "/runs/views/remove"])
def test_a_key_without_operate_keeps_and_removes_no_view(browse: Browse, path: str) -> None:
    reader = browse("read")
    assert reader.post(path, name="mine").status == 403
    assert "Save the view" not in reader.get("/runs", queue="default").forms


@pytest.mark.parametrize(
    ("scopes", "limits"),
    [(["operate"], Limits()), (["read", "operate"], Limits(queues=["mail"])), (["read", "operate"], Limits(["noop"]))],
)
def test_a_key_that_may_not_steer_all_runs_keeps_and_removes_no_view(
    app: flask.Flask, browse: Browse, committed: PgConnection, scopes: list[str], limits: Limits
) -> None:
    browse().post("/runs/views?queue=mail", name="ours")
    name = f"some {len(api_keys.list_keys(committed))}"
    visit = Visit(app, api_keys.create_key(committed, name, scopes, MAKER, limits=limits))
    assert visit.post("/runs/views?queue=a", name="ours").status == 403
    assert visit.post("/runs/views/remove", name="ours").status == 403
    assert not {"Save the view", "Remove the view"} & visit.get("/runs", queue="mail").forms.keys()
    assert [row["query"] for row in page_views.list_views(committed)] == ["queue=mail"]
    browse().post("/runs/views/remove", name="ours")


def test_the_api_and_the_command_name_the_view_that_was_changed(
    app: flask.Flask, browse: Browse, keys: dict[str, str], module_url: str
) -> None:
    browse().post("/runs/views?queue=named", name="by name")
    listed = app.test_client().get("/v1/audit?subject=view", headers={"Authorization": f"Bearer {keys['admin']}"})
    change = listed.get_json()["items"][0]
    assert (change["action"], change["subject_name"], change["after"]["query"]) == ("save", "by name", "queue=named")
    printed = rowcall({**os.environ, "DATABASE_URL": module_url}, "audit", "--subject", "view").stdout
    assert re.search(r"save +view +by name +.*queue=named", printed), printed
    browse().post("/runs/views/remove", name="by name")


def test_the_audit_log_keeps_nothing_of_a_view_that_may_be_about_a_person(browse: Browse) -> None:
    operator, admin = browse(), browse("admin")
    operator.post('/runs/views?payload={"email": "ada@example.com"}&key=ada&queue=mail', name="one customer")
    operator.post("/runs/views/remove", name="one customer")
    for action in ("save", "remove"):
        noted = admin.get(f"/audit?subject=view&action={action}")
        for part in ("payload=...", "key=...", "queue=mail"):
            assert part in noted.text
        assert "ada" not in noted.text
        assert not [link for link in noted.links if "payload" in link]


def test_the_audit_log_says_who_saved_replaced_and_removed_a_view(browse: Browse) -> None:
    operator, admin = browse(), browse("admin")
    for queue_name in ("a", "b"):
        operator.post(f"/runs/views?queue={queue_name}", name="mine")
    saved = admin.get("/audit?subject=view&action=save")
    assert "query queue=a → queue=b" in saved.text
    assert "/admin/runs?queue=b" in saved.links
    operator.post("/runs/views/remove", name="mine")
    removed = admin.get("/audit?subject=view&action=remove")
    assert ("view mine" in removed.text, "test operator" in removed.text) == (True, True)
    before = removed.text
    operator.post("/runs/views/remove", name="mine")
    assert admin.get("/audit?subject=view&action=remove").text.count("view mine") == before.count("view mine")
