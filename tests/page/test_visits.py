"""Operators sign in with a key, see what its scopes allow, and sign out."""

from __future__ import annotations

from tests.page.conftest import Browse


def test_the_button_ends_the_session_and_the_form_leads_back_to_the_screen_that_was_asked_for(browse: Browse) -> None:
    operator = browse()
    assert operator.get("/runs").status == 200
    ended = operator.send("", "Sign out test operator")
    assert (ended.status, ended.address) == (200, "/admin/sign-in")
    assert operator.get("/runs").address == "/admin/sign-in?to=/admin/runs"


def test_a_form_with_another_sessions_token_changes_nothing(browse: Browse) -> None:
    refused = browse().post("/queues/default/pause", csrf=browse().csrf)
    assert (refused.status, "nothing was changed" in refused.text) == (403, True)
    assert "paused" not in browse().get("/queues").text
    assert "paused" in browse().send("/queues/default", "Pause the queue default").text
