"""Failures on the page: each number leads to the attempts that it counts, and a group to the preview of its retry."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from rowcall.base.database import PgConnection, fetch_all
from rowcall.status import Status
from rowcall_api.page.screens import failures
from tests.page.conftest import Browse
from tests.page.visits import Screen
from tests.support.failures import failed


@pytest.fixture(autouse=True)
def no_failures(committed: PgConnection) -> None:
    """Begin each test without failures."""
    fetch_all(committed, "TRUNCATE rowcall.job_runs CASCADE; TRUNCATE rowcall.failure_counts")


def cells(shown: Screen) -> list[str]:
    """Return the addresses of the numbers."""
    return [link for link in shown.links if link.startswith("/admin/failures/attempts?")]


def test_without_failures_the_screen_says_so(browse: Browse) -> None:
    assert "No attempt has failed in the last 7 days." in browse("read").get("/failures").text


def test_each_number_leads_to_the_attempts_that_it_counts(browse: Browse, committed: PgConnection) -> None:
    """Two texts of one error are counted, and listed, separately."""
    runs = [failed(committed, "the mailbox of 7 is full", age) for age in ("5 minutes", "3 hours", "3 days")]
    other = failed(committed, "the server refused 'ada'")
    reader = browse("read")
    shown = reader.get("/failures")
    mine = [link for link in cells(shown) if reader.get(link).text.count("the mailbox of 7 is full")]
    counted = {parse_qs(urlsplit(link).query)["hours"][0]: reader.get(link) for link in mine}
    assert {hours: screen.text.count("the mailbox of 7 is full") for hours, screen in counted.items()} == {
        "1": 1,
        "24": 2,
        "168": 3,
    }
    assert all(f"/admin/runs/{run}" in counted["168"].links for run in runs)
    assert f"/admin/runs/{other}" not in counted["168"].links
    assert f"/admin/runs/{other}" in reader.get("/failures/attempts?error_type=ValueError").links


def test_a_list_of_attempts_says_what_became_of_each_run(browse: Browse, committed: PgConnection) -> None:
    failed(committed, status=Status.SUCCEEDED)
    assert "succeeded" in browse("read").get("/failures/attempts?hours=1").text


def test_a_list_says_when_there_are_more_attempts(
    browse: Browse, committed: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        failed(committed)
    monkeypatch.setattr(failures, "SHOWN_MOST", 1)
    assert "These are the newest 1; there are more." in browse("read").get("/failures/attempts").text


def test_an_address_with_an_unknown_period_shows_the_week(browse: Browse, committed: PgConnection) -> None:
    failed(committed, age="3 days")
    assert "Failed attempts of the last 7 days" in browse("read").get("/failures/attempts?hours=-1").text


def test_attempts_of_another_type_are_not_listed(browse: Browse, committed: PgConnection) -> None:
    failed(committed)
    assert "No such attempt is recorded for this period" in browse("read").get("/failures/attempts?job_type=other").text


def test_a_group_leads_to_the_preview_of_its_retry(browse: Browse, committed: PgConnection) -> None:
    dead = failed(committed, status=Status.DEAD)
    shown = browse().get("/failures")
    [group] = [link for link in shown.links if "/operations/new/retry" in link]
    assert parse_qs(urlsplit(group).query) == {"status": ["dead"], "job_type": ["noop"], "error_type": ["ValueError"]}
    preview = browse().get(group)
    assert (preview.status, "Nothing has been changed yet." in preview.text) == (200, True)
    assert f"/admin/runs/{dead}" in preview.links
    assert group in browse().get(cells(shown)[0]).links


def test_a_key_that_only_reads_is_not_led_to_a_retry(browse: Browse, committed: PgConnection) -> None:
    failed(committed, status=Status.DEAD)
    shown = browse("read").get("/failures")
    assert not re.search("/operations/new|Retry group", shown.html)
    assert "/operations/new" not in browse("read").get(cells(shown)[0]).html


def test_one_queue_or_type_can_be_shown(browse: Browse, committed: PgConnection) -> None:
    failed(committed, queue="'mail'")
    assert "in the queue mail" in browse("read").get("/failures?queue=mail").text
    assert "No attempt of these runs has failed" in browse("read").get("/failures?job_type=other").text
