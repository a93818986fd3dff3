"""Definitions on the page: schedules in words, occurrences with their reasons, the preview, and the buttons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowcall import definitions
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, fetch_all, fetch_one
from rowcall.job_types import catalogue
from rowcall.status import Status
from tests.page.conftest import Browse
from tests.support.rows import run_in

MAKER = Operator("tests")

OCCUR = """
INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, reason, revision, run_id)
VALUES (%(definition_id)s, now() - %(days)s * interval '1 day', %(outcome)s, %(reason)s, 1, %(run_id)s)
"""


def put(connection: PgConnection, name: str, **content: Any) -> int:
    checked = definitions.checked(name, {"job_type": "noop", **content}, catalogue())
    number: int = definitions.put(connection, name, checked, catalogue(), "api", MAKER).row["id"]
    return number


@pytest.fixture
def nightly(committed: PgConnection) -> Iterator[int]:
    """Yield the id of a definition that no other test has changed."""
    yield put(committed, "nightly", schedule="17 3 * * *", time_zone="Europe/Berlin")
    definitions.remove(committed, "nightly", MAKER)


def test_without_definitions_the_list_says_what_to_do_first(browse: Browse) -> None:
    assert "There are no definitions yet. rowcall definitions apply FILE" in browse("read").get("/definitions").text


def test_the_list_says_the_schedule_in_words_beside_the_expression(browse: Browse, nightly: int) -> None:
    shown = browse("read").get("/definitions").text
    assert "every day at 03:17, Europe/Berlin 17 3 * * *" in shown


def test_an_uncommon_schedule_is_shown_once_as_it_is(browse: Browse, committed: PgConnection) -> None:
    put(committed, "odd", schedule="*/7 * 13 * FRI")
    assert browse("read").get("/definitions/odd").text.count("*/7 * 13 * FRI") == 2  # as a sentence, and as content
    definitions.remove(committed, "odd", MAKER)


def test_a_definition_without_a_schedule_runs_on_request(browse: Browse, committed: PgConnection) -> None:
    put(committed, "manual")
    shown = browse("read").get("/definitions/manual")
    assert "Runs on request only" in shown.text
    assert "Preview" not in shown.text
    definitions.remove(committed, "manual", MAKER)


def test_the_next_five_times_are_in_its_zone_and_in_one_that_the_script_replaces(browse: Browse, nightly: int) -> None:
    shown = browse("read").get("/definitions/nightly")
    assert shown.html.count('<time class="local"') == 5
    assert shown.text.count(" 03:17 CE") == 5
    assert "<span data-zone>UTC</span>" in shown.html


def test_each_kind_of_occurrence_has_its_word_and_its_reason(
    browse: Browse, nightly: int, committed: PgConnection
) -> None:
    dead = run_in(committed, Status.DEAD)["id"]
    for days, outcome, reason, run_id in (
        (1, "enqueued", None, dead),
        (2, "enqueued", "20 min late", run_in(committed, Status.SUCCEEDED)["id"]),
        (3, "skipped", "paused", None),
        (4, "missed", "no worker enqueued it in time (catch_up skip)", None),
    ):
        values = {"definition_id": nightly, "days": days, "outcome": outcome, "reason": reason, "run_id": run_id}
        fetch_all(committed, OCCUR, values)
    shown = browse("read").get("/definitions/nightly")
    assert "Last 4 occurrences" in shown.text
    assert "1 enqueued, 1 enqueued late, 1 skipped, 1 missed" in " ".join(shown.text.replace(" ,", ",").split())
    assert "no worker enqueued it in time (catch_up skip)" in shown.text
    for cell in ('class="enqueued dead"', 'class="late"', 'class="skipped"', 'class="missed"'):
        assert cell in shown.html
    assert ": missed, no worker enqueued it in time (catch_up skip)" in shown.html  # on hover
    assert f"/admin/runs/{dead}" in shown.links


def test_an_overdue_definition_says_why(browse: Browse, nightly: int, committed: PgConnection) -> None:
    sql = "UPDATE rowcall.job_definitions SET next_run_at = now() - interval '1 hour' WHERE id = %(id)s"
    fetch_all(committed, sql, {"id": nightly})
    assert "overdue no worker has ever ticked" in browse("read").get("/definitions").text
    assert "Overdue: no worker has ever ticked." in browse("read").get("/definitions/nightly").text


def test_a_paused_definition_looks_paused_and_can_be_resumed(browse: Browse, nightly: int) -> None:
    operator = browse()
    paused = operator.send("/definitions/nightly", "Pause nightly")
    assert "nightly paused Runs every day" in paused.text
    assert "nothing is enqueued, and each nominal time is recorded as skipped" in paused.text
    assert paused.text.partition("Next times")[2].count("UTC skipped paused") == 5  # each of the next five times
    assert 'tr class="paused"' in operator.get("/definitions").html
    resumed = operator.send("/definitions/nightly", "Resume nightly")
    assert "Resumed." in resumed.text
    assert "Pause nightly" in resumed.forms
    assert 'class="status paused"' not in resumed.html


def test_a_form_of_an_older_version_changes_nothing(browse: Browse, nightly: int, committed: PgConnection) -> None:
    operator = browse()
    old = operator.get("/definitions/nightly").forms["Pause nightly"].fields["version"]
    put(committed, "nightly", schedule="18 3 * * *")
    refused = operator.post("/definitions/nightly/pause", version=old)
    assert (refused.status, "is now at version" in refused.text) == (412, True)
    assert definitions.get_definition(committed, "nightly")["paused_at"] is None


def test_a_run_is_enqueued_once_though_the_form_is_sent_twice(
    browse: Browse, nightly: int, committed: PgConnection
) -> None:
    operator = browse()
    form = operator.get("/definitions/nightly").forms["Run nightly now"]
    first, second = (operator.post(form.action, once=form.fields["once"]) for _ in range(2))
    assert "This run was just enqueued." in first.text
    assert first.address == second.address
    sql = "SELECT count(*) AS runs FROM rowcall.job_runs WHERE definition_id = %(id)s"
    counted = fetch_one(committed, sql, {"id": nightly})
    assert counted == {"runs": 1}


def test_the_preview_begins_at_another_time(browse: Browse, nightly: int) -> None:
    shown = browse("read").get("/definitions/nightly", **{"from": "2030-01-01 00:00"})
    assert "Tue 2030-01-01 03:17 CET" in shown.text
    assert "More times follow" not in shown.text
    assert 'value="2030-01-01 00:00"' in shown.html


def test_the_preview_of_an_outage_says_what_the_next_tick_would_do(browse: Browse, nightly: int) -> None:
    shown = browse("read").send(
        "/definitions/nightly", "Preview", **{"from": "2030-01-01 00:00", "asleep": "2030-01-03 04:00"}
    )
    assert "missed superseded by the nominal time 2030-01-03 03:17+01:00 (catch_up latest)" in shown.text
    assert "enqueued 43 min late" in shown.text


@pytest.mark.parametrize(
    ("asked", "field", "why"),
    [
        ({"from": "soon"}, "from", "is not a time"),
        ({"asleep": "2001-01-01 00:00"}, "asleep", "must be later than from"),
    ],
)
def test_a_wrong_time_of_the_preview_is_explained_at_its_field(
    browse: Browse, nightly: int, asked: dict[str, str], field: str, why: str
) -> None:
    shown = browse("read").get("/definitions/nightly", **asked)
    assert shown.status == 200
    assert f'id="{field}-wrong"' in shown.html
    assert why in shown.text


def test_an_unknown_definition_is_not_found(browse: Browse) -> None:
    assert browse("read").get("/definitions/none").status == 404


@pytest.mark.parametrize("event", ["pause", "resume", "run-now"])
def test_a_key_that_only_reads_sees_no_buttons_and_is_refused(browse: Browse, nightly: int, event: str) -> None:
    reader = browse("read")
    assert not {"Run nightly now", "Pause nightly"} & reader.get("/definitions/nightly").forms.keys()
    assert reader.post(f"/definitions/nightly/{event}").status == 403


def test_a_key_without_the_scope_of_the_job_type_cannot_run_it(browse: Browse, nightly: int) -> None:
    refused = browse("operate").post("/definitions/nightly/run-now")
    assert (refused.status, "enqueue" in refused.text) == (403, True)
