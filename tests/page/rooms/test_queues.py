"""Queues on the page: what holds one up, its limits, and the forms that pause, resume, limit and forget it."""

from __future__ import annotations

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, fetch_all
from rowcall.status import Status
from tests.page.conftest import Browse
from tests.support.rows import run_in

MAKER = Operator("tests")


@pytest.fixture(autouse=True)
def no_settings(committed: PgConnection) -> None:
    """Begin each test without settings and runs."""
    fetch_all(committed, "TRUNCATE rowcall.queues; TRUNCATE rowcall.job_runs CASCADE")


def test_a_queue_says_what_holds_it_up(browse: Browse, committed: PgConnection) -> None:
    run = run_in(committed, Status.QUEUED, queue="'mail'", run_at="now() - interval '20 minutes'")["id"]
    shown = browse("read").get("/queues/mail")
    assert "What holds it up: no live worker takes noop from queue mail" in shown.text
    assert f"Run {run} of noop has been due longest, for 20 min" in shown.text
    assert "1 run of this type is due here" in shown.text
    assert "What holds it up?" in browse("read").get("/queues").text


def test_a_queue_without_due_runs_says_so(browse: Browse) -> None:
    shown = browse("read").get("/queues/mail")
    assert "Nothing is due in this queue." in shown.text
    assert "What holds it up" not in shown.text


def test_a_paused_queue_looks_paused_and_can_be_resumed(browse: Browse) -> None:
    operator = browse()
    paused = operator.send("/queues/mail", "Pause the queue mail")
    assert "Paused." in paused.text
    assert "all others wait until someone resumes it" in paused.text
    assert '<tr class="paused">' in operator.get("/queues").html
    resumed = operator.send("/queues/mail", "Resume the queue mail")
    assert "Resumed." in resumed.text
    assert "Pause the queue mail" in resumed.forms


def test_the_list_pauses_and_resumes_a_queue(browse: Browse) -> None:
    operator = browse()
    assert "Paused." in operator.send("/queues", "Pause the queue default").text
    listed = operator.get("/queues")
    assert ("Resume the queue default" in listed.forms, "Pause the queue default" in listed.forms) == (True, False)
    assert "Resumed." in operator.send("/queues", "Resume the queue default").text
    assert "Change" not in browse("read").get("/queues").text


def test_a_limit_is_set_and_removed(browse: Browse) -> None:
    operator = browse()
    limited = operator.send("/queues/mail", "Set the limit", max_running="3")
    assert "The limit is set." in limited.text
    assert "The code declares no limit; operators have set a limit of 3." in limited.text
    assert 'value="3"' in limited.html
    assert "operators set" not in operator.send("/queues/mail", "Set the limit", max_running="").text


def test_the_limit_0_is_unmistakable(browse: Browse, committed: PgConnection) -> None:
    queue.limit_queue(committed, "mail", 0, MAKER)
    assert "Its limit is 0" in browse("read").get("/queues/mail").text
    assert "limit 0" in browse("read").get("/queues").text


@pytest.mark.parametrize("typed", ["-1", "two", "2147483648", "99999999999999999999", "1.5"])
def test_a_wrong_limit_is_explained_at_its_field_and_kept(browse: Browse, typed: str) -> None:
    refused = browse().send("/queues/mail", "Set the limit", max_running=typed)
    assert refused.status == 422
    assert 'id="max_running-wrong"' in refused.html
    assert f'value="{typed}"' in refused.html
    assert "operators set" not in refused.text


def test_settings_are_removed(browse: Browse, committed: PgConnection) -> None:
    queue.pause_queue(committed, "mispelt", MAKER)
    operator = browse()
    removed = operator.send("/queues/mispelt", "Remove the settings of mispelt")
    assert (removed.address, "The settings are removed." in removed.text) == (
        "/admin/queues?done=remove-settings",
        True,
    )
    assert operator.get("/queues/mispelt").status == 404


def test_a_queue_without_settings_has_none_to_remove(browse: Browse) -> None:
    assert "Remove the settings of mail" not in browse().get("/queues/mail").forms
    refused = browse().post("/queues/mail/remove")
    assert (refused.status, "has no settings to remove" in refused.text) == (404, True)


@pytest.mark.parametrize("event", ["pause", "resume", "limit", "remove"])
def test_a_key_that_only_reads_sees_no_buttons_and_is_refused(
    browse: Browse, committed: PgConnection, event: str
) -> None:
    queue.pause_queue(committed, "mail", MAKER)
    reader = browse("read")
    assert len(reader.get("/queues/mail").forms) == len(reader.get("/workers").forms)
    assert reader.post(f"/queues/mail/{event}").status == 403
    assert queue.list_queues(committed, {})[0]["paused_at"] is not None


def test_an_unknown_queue_is_not_found_and_a_name_that_none_can_have_is_refused(browse: Browse) -> None:
    assert browse("read").get("/queues/none").status == 404
    assert browse().post("/queues/Not%20A%20Queue/pause").status == 422
