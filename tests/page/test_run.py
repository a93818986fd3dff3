"""One run: what it shows, what its buttons say and do, and what is refused."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import flask
import pytest

from rowcall.access import api_keys
from rowcall.access.caller import Limits
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.status import Event, Status
from tests.page.conftest import MAKER, Browse
from tests.page.visits import Screen, Visit
from tests.support.rows import row_of, run_in
from tests.support.run_log import insert_lines

# The buttons of a run in each status, without the number of the run; a live run cannot be cloned by its natural key.
BUTTONS = {
    Status.QUEUED: {"Run now", "Reschedule", "Cancel", "Enqueue the copy"},
    Status.FAILED: {"Run now", "Reschedule", "Cancel", "Enqueue the copy"},
    Status.RUNNING: {"Ask to cancel", "Cancel by force", "Enqueue the copy"},
    Status.SUCCEEDED: {"Enqueue the copy"},
    Status.DEAD: {"Retry", "Enqueue the copy"},
    Status.CANCELLED: {"Retry", "Enqueue the copy"},
}

ATTEMPT = """
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, started_at, ended_at, error_type, error,
    stack, forensics)
VALUES (%(run_id)s, %(lease_no)s, coalesce(%(attempt)s, %(lease_no)s), %(outcome)s, 'host:1',
    now() - interval '90 seconds', now() - interval '60 seconds', 'ValueError', %(error)s,
    'Traceback of it', '{"signal": "SIGKILL"}')
"""

EFFECT = """
INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state, applied_at,
    provider_reference)
VALUES ('mail:' || %(run_id)s, %(run_id)s, 1, '', %(state)s, CASE WHEN %(state)s = 'applied' THEN now() END, 'ref-7')
"""


def ended(
    connection: PgConnection,
    run_id: int,
    lease_no: int,
    outcome: Event,
    error: str = "it broke",
    attempt: int | None = None,
) -> None:
    """Insert an attempt that did not succeed; its number is that of its lease, unless another is given."""
    values = {"run_id": run_id, "lease_no": lease_no, "attempt": attempt, "outcome": outcome, "error": error}
    fetch_all(connection, ATTEMPT, values)


def buttons(screen: Screen) -> set[str]:
    """Return the texts of the buttons, without numbers and what each screen has."""
    names = {re.sub(r" (run )?\d+", "", name) for name in screen.forms}
    return {name for name in names if not name.startswith("Sign out") and name != "Close"}


@pytest.mark.parametrize("status", Status)
def test_a_run_has_the_buttons_for_what_its_status_allows(
    browse: Browse, committed: PgConnection, status: Status
) -> None:
    path = f"/runs/{run_in(committed, status)['id']}"
    shown = {name.removesuffix(" now") + " now" * (name == "Run now") for name in buttons(browse().get(path))}
    assert shown == BUTTONS[status]
    assert buttons(browse("read").get(path)) == set()


def test_a_key_with_other_limits_sees_no_button_and_its_form_is_refused(
    app: flask.Flask, committed: PgConnection
) -> None:
    limits = Limits(None, ["reports"])
    key = api_keys.create_key(committed, "test limits", ["read", "operate", "enqueue"], MAKER, limits=limits)
    run_id = run_in(committed, Status.DEAD)["id"]
    limited = Visit(app, key)
    assert buttons(limited.get(f"/runs/{run_id}")) == set()
    for event in ("retry", "clone", "reschedule"):
        assert limited.post(f"/runs/{run_id}/{event}", run_at="now").status == 403
    within = run_in(committed, Status.DEAD, queue="'reports'")["id"]
    assert buttons(limited.get(f"/runs/{within}")) == BUTTONS[Status.DEAD]


@pytest.mark.parametrize("event", ["retry", "cancel", "force-cancel", "run-now", "reschedule", "clone"])
def test_a_key_without_operate_changes_nothing(browse: Browse, committed: PgConnection, event: str) -> None:
    run_id = run_in(committed, Status.QUEUED)["id"]
    before = row_of(committed, run_id)
    refused = browse("read").post(f"/runs/{run_id}/{event}", run_at="now")
    assert (refused.status, "lacks the scope `operate`" in refused.text) == (403, True)
    assert row_of(committed, run_id) == before


@pytest.mark.parametrize(
    ("status", "button", "said", "becomes"),
    [
        (Status.DEAD, "Retry run {}", "The run is queued again.", Status.QUEUED),
        (Status.QUEUED, "Cancel run {}", "The run is cancelled", Status.CANCELLED),
        (Status.FAILED, "Run {} now", "The run is due now.", Status.QUEUED),
        (Status.RUNNING, "Ask to cancel run {}", "asked to stop", Status.RUNNING),
        (Status.RUNNING, "Cancel run {} by force", "The run is cancelled", Status.CANCELLED),
    ],
)
def test_a_button_changes_the_run_and_records_the_reason(
    browse: Browse, committed: PgConnection, status: Status, button: str, said: str, becomes: Status
) -> None:
    run_id = run_in(committed, status)["id"]
    screen = browse().send(f"/runs/{run_id}", button.format(run_id), reason="the provider is back")
    assert (screen.status, said in screen.text) == (200, True), screen.text
    assert row_of(committed, run_id)["status"] == becomes
    reason = "SELECT after ->> 'reason' FROM rowcall.audit_log WHERE subject = 'run' AND subject_id = %(run_id)s"
    assert fetch_value(committed, reason, {"run_id": run_id}) == "the provider is back"


def test_a_change_that_the_status_does_not_allow_is_refused_in_a_sentence(
    browse: Browse, committed: PgConnection
) -> None:
    run_id = run_in(committed, Status.SUCCEEDED)["id"]
    refused = browse().post(f"/runs/{run_id}/retry")
    assert (refused.status, refused.response.mimetype) == (409, "text/html")
    assert f"run {run_id} has succeeded" in refused.text.lower()
    assert f"/admin/runs/{run_id}" in refused.links


@pytest.mark.parametrize("button", ["Run {} now", "Reschedule run {}", "Enqueue the copy"])
def test_a_screen_that_is_out_of_date_changes_nothing(browse: Browse, committed: PgConnection, button: str) -> None:
    run_id = run_in(committed, Status.QUEUED)["id"]
    operator = browse()
    form = operator.get(f"/runs/{run_id}").forms[button.format(run_id)]
    fetch_all(committed, "UPDATE rowcall.job_runs SET lease_no = 9 WHERE id = %(run_id)s", {"run_id": run_id})
    refused = operator.submit(form, run_at="tomorrow")
    assert (refused.status, refused.response.mimetype) == (412, "text/html"), refused.text
    assert "has changed" in refused.text


def test_a_run_is_rescheduled_in_words(browse: Browse, committed: PgConnection) -> None:
    run = run_in(committed, Status.QUEUED)
    screen = browse().send(f"/runs/{run['id']}", f"Reschedule run {run['id']}", run_at="in 2 days")
    assert "The run is due at the new time." in screen.text
    later = row_of(committed, run["id"])["run_at"] - run["created_at"]
    assert timedelta(days=2) <= later < timedelta(days=3)


@pytest.mark.parametrize(
    ("typed", "said"), [("someday", "'someday' is not a time"), ("1999-01-01", "must be a time in the years")]
)
def test_a_wrong_time_is_named_at_its_field_and_kept(
    browse: Browse, committed: PgConnection, typed: str, said: str
) -> None:
    run_id = run_in(committed, Status.QUEUED)["id"]
    screen = browse().send(f"/runs/{run_id}", f"Reschedule run {run_id}", run_at=typed)
    assert screen.status == 422
    assert re.search(f'id="run_at-wrong">[^<]*{said.replace(chr(39), "&#39;")}', screen.html, re.I), screen.text
    assert screen.forms[f"Reschedule run {run_id}"].fields["run_at"] == [typed]


def test_a_copy_has_the_edited_payload(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.DEAD, payload="""'{"user_id": 1}'""")["id"]
    screen = browse().send(f"/runs/{run_id}", "Enqueue the copy", payload='{"user_id": 2}')
    assert "This run is the copy." in screen.text
    copy = int(screen.address.split("/")[3].split("?")[0])
    assert (row_of(committed, copy)["payload"], row_of(committed, run_id)["status"]) == ({"user_id": 2}, "dead")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ('{"invoice_id": "many"}', "invoice_id"),
        ("{invoice", "It is not JSON"),
        ("[1]", "Must be a JSON object"),
        ('{"invoice_id": Infinity}', "which is not a number in JSON"),
    ],
)
def test_a_payload_that_is_refused_is_kept_with_what_is_wrong(
    browse: Browse, committed: PgConnection, typed: str, said: str
) -> None:
    run_id = run_in(committed, Status.DEAD, job_type="'charge_invoice'", payload="""'{"invoice_id": 3}'""")["id"]
    screen = browse().send(f"/runs/{run_id}", "Enqueue the copy", payload=typed)
    assert screen.status == 422
    assert re.search(f'id="payload-wrong">[^<]*{re.escape(said)}', screen.html), screen.text
    assert screen.forms["Enqueue the copy"].fields["payload"] == [typed]
    # Live updates load the same address.
    assert browse().get(f"/runs/{run_id}/clone").status == 200


def test_the_timeline_tells_every_attempt_in_order(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.SUCCEEDED, attempts="4", started_at="now()", created_by="'cli:me'")["id"]
    ended(committed, run_id, 1, Event.FAIL, "it broke\nin the second line")
    ended(committed, run_id, 2, Event.RELEASE)
    ended(committed, run_id, 3, Event.EXPIRE)
    text = browse("read").get(f"/runs/{run_id}").text
    told = ("Enqueued by cli:me", "Attempt 1 failed", "Attempt 2 was released", "Attempt 3 lost", "Attempt 4 succeeded")
    places = [text.index(words) for words in told]
    assert places == sorted(places)
    assert "ValueError it broke Full error it broke in the second line" in text
    for words in ("after 30", "by host:1", "Traceback of it", "SIGKILL"):
        assert words in text


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status.RUNNING, "Attempt 2 began"),
        (Status.QUEUED, "Attempt 3 of 5 is due"),
        (Status.FAILED, "Attempt 3 of 5 is due"),
        (Status.CANCELLED, "The run is cancelled"),
    ],
)
def test_the_timeline_ends_with_the_present(browse: Browse, committed: PgConnection, status: Status, said: str) -> None:
    assert said in browse("read").get(f"/runs/{run_in(committed, status)['id']}").text


def test_the_timeline_shows_where_a_retry_restarted_the_count(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.QUEUED, attempts="0", max_attempts="2")["id"]
    for lease_no, outcome in enumerate((Event.SNOOZE, Event.FAIL, Event.GIVE_UP), 1):
        ended(committed, run_id, lease_no, outcome, attempt=max(1, lease_no - 1))
    text = browse("read").get(f"/runs/{run_id}").text
    told = (
        "Attempt 1 was snoozed",
        "Attempt 1 failed",
        "Attempt 2 failed for good",
        "Retried",
        "Attempt 1 of 2 is due",
    )
    places = [text.index(words) for words in told]
    assert places == sorted(places)
    assert text.count("Retried") == 1
    assert "0 of 2 since the last retry" in text


def test_older_attempts_are_a_link_away(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.DEAD, attempts="25", max_attempts="25")["id"]
    for lease_no in range(1, 26):
        ended(committed, run_id, lease_no, Event.FAIL)
    reader = browse("read")
    newest = reader.get(f"/runs/{run_id}")
    assert ("Attempt 6 failed" in newest.text, "Attempt 5 failed" in newest.text) == (True, False)
    [older] = [link for link in newest.links if "before=" in link]
    assert ("Attempt 6 failed" in reader.get(older).text, "Attempt 5 failed" in reader.get(older).text) == (False, True)


def test_effects_and_log_lines_are_shown(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.SUCCEEDED)["id"]
    fetch_all(committed, EFFECT, {"run_id": run_id, "state": "applied"})
    insert_lines(committed, run_id, [3, 4])
    screen = browse("read").get(f"/runs/{run_id}")
    for words in (f"mail:{run_id} applied ref-7", "2 older lines were not kept", "info line 3", "info line 4"):
        assert words in screen.text


def test_a_retry_that_would_die_again_says_so(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.DEAD)["id"]
    fetch_all(committed, EFFECT, {"run_id": run_id, "state": "unknown"})
    assert (
        "It would die again: the outcome of 1 effect is unknown. Resolve it first"
        in browse().get(f"/runs/{run_id}").text
    )


def test_progress_and_the_reasons_for_waiting_are_shown(browse: Browse, committed: PgConnection) -> None:
    progress = """'{"share": 0.5, "note": "half of it"}'"""
    running = run_in(committed, Status.RUNNING, progress=progress, cancel_requested_at="now()")["id"]
    text = browse("read").get(f"/runs/{running}").text
    assert ("50% half of it" in text, "asked to stop" in text) == (True, True)
    waiting = run_in(committed, Status.QUEUED, run_at="now() + interval '1 hour'")["id"]
    assert 'class="fails"' in browse("read").get(f"/runs/{waiting}").html


def test_a_key_without_read_sees_the_shape_only(browse: Browse, committed: PgConnection) -> None:
    secrets = {"payload": """'{"user_id": 4711, "note": "a secret"}'""", "result": """'"another secret"'"""}
    run_id = run_in(committed, Status.DEAD, last_error="'a secret error'", **secrets)["id"]
    screen = browse("operate").get(f"/runs/{run_id}")
    assert ("secret" in screen.html, "4711" in screen.html) == (False, False)
    for words in ('"user_id": "integer"', '"note": "text"', "lacks the scope read"):
        assert words in screen.text
    assert buttons(screen) == {"Retry"}
    assert "The run is queued again." in browse("operate").send(f"/runs/{run_id}", f"Retry run {run_id}").text


def test_a_run_that_does_not_exist_is_refused_in_html(browse: Browse) -> None:
    missing = browse("read").get("/runs/987654")
    assert (missing.status, missing.response.mimetype) == (404, "text/html")


def test_a_clone_form_that_is_sent_twice_enqueues_one_copy(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.SUCCEEDED)["id"]
    visit = browse()
    form = visit.get(f"/runs/{run_id}").forms["Enqueue the copy"]
    sent: dict[str, Any] = {**form.fields}
    first, second = (visit.post(form.action, **sent) for _ in range(2))
    assert first.address.split("?")[0] == second.address.split("?")[0] != f"/admin/runs/{run_id}"
