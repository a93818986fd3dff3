"""The list of runs: filters, order, counts, suggestions, and what to do with all that match."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial

import flask
import pytest

from rowcall import queue
from rowcall.access import api_keys
from rowcall.access.caller import Limits
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.status import Status
from tests.page.conftest import MAKER, Browse
from tests.page.visits import Screen, Visit
from tests.support.failures import failed
from tests.support.rows import definition_of, run_in


@pytest.fixture(scope="module")
def run_ids(module_url: str) -> dict[str, int]:
    """Insert runs that differ, by what they show."""
    with database.transaction(module_url) as connection:
        definition = str(definition_of(connection, "nightly"))
        return {
            "old": run_in(connection, Status.SUCCEEDED, created_at="now() - interval '3 hours'")["id"],
            "dead": failed(connection, error="it broke\nand more", status=Status.DEAD, queue="'reports'"),
            "retrying": failed(connection, error_type="KeyError", error="'name'"),
            "recovered": failed(connection, error_type="IndexError", error="gone", status=Status.SUCCEEDED),
            "due": run_in(connection, Status.QUEUED, run_at="now() + interval '3 hours'", idempotency_key="'mine'")[
                "id"
            ],
            "defined": run_in(connection, Status.QUEUED, definition_id=definition, payload="""'{"user_id": 7}'""")[
                "id"
            ],
        }


@pytest.fixture
def limited(app: flask.Flask, committed: PgConnection) -> Visit:
    """Return an operator whose key is limited to one queue."""
    key = api_keys.create_key(committed, "test limited", ["read", "operate"], MAKER, limits=Limits(None, ["reports"]))
    return Visit(app, key)


def listed(screen: Screen) -> list[int]:
    """Return the ids of the runs on the screen, in their order."""
    return [int(found) for found in re.findall(r'<td class="id"><a href="/admin/runs/(\d+)"', screen.html)]


def names(run_ids: dict[str, int], screen: Screen) -> set[str]:
    return {name for name, run_id in run_ids.items() if run_id in listed(screen)}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"status": "dead"}, {"dead"}),
        ({"status": ["dead", "failed"]}, {"dead", "retrying"}),
        ({"status": "dead,failed"}, {"dead", "retrying"}),
        ({"queue": "reports"}, {"dead"}),
        ({"error_type": "KeyError"}, {"retrying"}),
        ({"definition": "nightly"}, {"defined"}),
        ({"key": "mine"}, {"due"}),
        ({"payload": '{"user_id": 7}'}, {"defined"}),
        ({"created_before": "2 hours ago"}, {"old"}),
        ({"created_before": "2h"}, {"old"}),
        ({"run_after": "2h"}, {"due"}),
        ({"created_by": "nobody"}, set()),
    ],
)
def test_each_filter_of_the_address_selects_runs(
    browse: Browse, run_ids: dict[str, int], query: dict[str, str], found: set[str]
) -> None:
    screen = browse("read").get("/runs", **query)
    assert (screen.status, names(run_ids, screen)) == (200, found)


@pytest.mark.parametrize(("query", "is_open"), [({"queue": "reports"}, False), ({"key": "mine"}, True), ({}, False)])
def test_the_rarer_filters_are_folded_unless_one_is_set(browse: Browse, query: dict[str, str], is_open: bool) -> None:
    assert ('<details class="more" open>' in browse("read").get("/runs", **query).html) == is_open


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"created_after": "the day after"}, "'the day after' is not a time: write"),
        ({"payload": "{"}, "It is not JSON"),
        ({"payload": '{"of": NaN}'}, "/of: is NaN, which is not a number in JSON"),
        ({"status": "lost"}, "Must be one of: queued"),
        ({"order": "sideways"}, "order: Must be one of: desc, asc"),
        ({"cursor": "nonsense"}, "cursor"),
    ],
)
def test_a_wrong_filter_is_named_at_its_field_and_keeps_what_was_typed(
    browse: Browse, run_ids: dict[str, int], query: dict[str, str], said: str
) -> None:
    screen = browse("read").get("/runs", queue="reports", **query)
    assert (screen.status, said in screen.text, listed(screen)) == (422, True, []), screen.text
    assert 'value="reports"' in screen.html


def test_a_page_in_words_of_time_leads_to_the_next_one_with_the_time_itself(
    browse: Browse, committed: PgConnection
) -> None:
    for _ in range(60):
        run_in(committed, Status.CANCELLED, queue="'many'")
    reader = browse("read")
    first = reader.get("/runs", queue="many", created_after="1h ago")
    [following] = [link for link in first.links if "cursor=" in link]
    assert "1h" not in following
    second = reader.get(following)
    assert (len(listed(first)), len(listed(second)), second.status) == (50, 10, 200)
    assert not {*listed(first)} & {*listed(second)}


def test_the_oldest_come_first_on_request_and_stay_first_on_the_next_filter(
    browse: Browse, run_ids: dict[str, int]
) -> None:
    reader = browse("read")
    newest = reader.get("/runs", definition="nightly")
    assert newest.forms["Filter"].fields.get("order") is None
    oldest = reader.get("/runs", order="asc", queue="default")
    assert listed(oldest) == sorted(listed(oldest))
    assert listed(oldest)[0] == run_ids["old"]
    assert oldest.forms["Filter"].fields["order"] == ["asc"]


def test_runs_are_counted_if_that_is_cheap_or_on_request(
    browse: Browse, run_ids: dict[str, int], committed: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = browse("read")
    assert "1 run." in reader.get("/runs", queue="reports").text
    for _ in range(51):
        run_in(committed, Status.CANCELLED, queue="'counted'")
    screen = reader.get("/runs", queue="counted")
    [link] = [link for link in screen.links if "count=yes" in link]
    assert "51" not in screen.text
    assert "51 runs match." in reader.get(link).text
    monkeypatch.setattr(queue, "count_runs", partial(queue.count_runs, most=5))
    assert "5 or more runs match." in reader.get(link).text


def test_the_error_of_a_run_that_has_succeeded_does_not_look_like_a_present_one(
    browse: Browse, run_ids: dict[str, int]
) -> None:
    screen = browse("read").get("/runs", order="asc")
    assert "earlier: IndexError gone" in screen.text
    assert "earlier: ValueError" not in screen.text
    assert "ValueError it broke" in screen.text
    assert "and more" not in screen.text, "a row shows the first line"


def test_fields_suggest_job_types_queues_definitions_and_recent_errors(browse: Browse, run_ids: dict[str, int]) -> None:
    screen = browse("read").get("/runs")
    for value in ("charge_invoice", "payments", "nightly", "KeyError"):
        assert f'<option value="{value}">' in screen.html


@pytest.mark.parametrize(
    ("query", "actions"),
    [
        ({}, set()),
        ({"status": "dead"}, {"retry"}),
        ({"status": "failed"}, {"run_now", "cancel"}),
        ({"status": "running"}, {"cancel"}),
        ({"status": "succeeded"}, set()),
        ({"queue": "default"}, {"retry", "run_now", "cancel"}),
    ],
)
def test_all_that_match_can_be_changed_if_there_is_a_filter_and_an_action_for_it(
    browse: Browse, run_ids: dict[str, int], query: dict[str, str], actions: set[str]
) -> None:
    assert offered(browse().get("/runs", **query)) == actions
    assert offered(browse("read").get("/runs", **query)) == set()


def offered(screen: Screen) -> set[str]:
    """Return the actions on all that match."""
    return {found for link in screen.links for found in re.findall(r"/operations/new/([a-z_]+)\?", link)}


def test_a_limited_key_is_offered_only_what_it_may_change(limited: Visit, run_ids: dict[str, int]) -> None:
    assert offered(limited.get("/runs", status="dead")) == set()
    assert offered(limited.get("/runs", queue="reports", status="dead")) == {"retry"}


def test_a_link_to_an_action_names_the_time_and_not_its_words(browse: Browse, run_ids: dict[str, int]) -> None:
    [link] = [one for one in browse().get("/runs", status="dead", created_after="1h").links if "/new/retry" in one]
    [moment] = re.findall(r"created_after=([^&]+)", link)
    at = datetime.fromisoformat(moment.replace("%2B", "+").replace("%3A", ":"))
    assert timedelta(minutes=50) < datetime.now(UTC) - at < timedelta(hours=2)


def test_a_list_that_is_empty_says_what_to_do(browse: Browse, run_ids: dict[str, int]) -> None:
    assert "No run matches. Show all runs" in browse("read").get("/runs", queue="empty").text


def test_a_search_in_payloads_that_is_refused_leaves_a_gap(
    browse: Browse, run_ids: dict[str, int], module_url: str
) -> None:
    reader = browse("read")
    with closing(database.connect(module_url)) as other:
        fetch_all(
            other,
            """SELECT pg_advisory_xact_lock(hashtextextended('rowcall.search/' || id || '/' || slot, 0))
               FROM rowcall.api_keys, generate_series(1, 2) AS slot WHERE name = 'test read'""",
        )
        screen = reader.get("/runs", payload='{"user_id": 7}')
        other.rollback()
    assert (screen.status, listed(screen)) == (200, [])
    assert "searches" in screen.text
    assert screen.forms["Filter"].fields["payload"] == ['{"user_id": 7}']


def test_a_key_without_read_does_not_see_the_list(browse: Browse) -> None:
    refused = browse("operate").get("/runs")
    assert (refused.status, "lacks the scope `read`" in refused.text) == (403, True)
