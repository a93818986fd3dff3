"""The field at the top: runs by id, key or payload, effects by key, reference, recipient or Message-ID."""

from __future__ import annotations

import re

import pytest

from rowcall import effects
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.status import Status
from tests.page.conftest import Browse
from tests.support.rows import run_in

EMAIL = """
INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state, applied_at, recipient,
    provider_reference)
VALUES (%(key)s, %(run_id)s, 1, '', 'applied', now(), 'ada@example.org', %(reference)s) RETURNING id
"""


@pytest.fixture(scope="module")
def ids(module_url: str) -> dict[str, int]:
    """Insert runs and effects."""
    with database.transaction(module_url) as connection:
        run_id = run_in(connection, Status.SUCCEEDED, idempotency_key="'order:7'")["id"]
        run_in(connection, Status.CANCELLED, natural_key="'both'", idempotency_key="'both'")
        parameters = [{"key": "mail:7", "reference": "<7@mail>"}, {"key": "both", "reference": "shared"}]
        first, second = (database.fetch_value(connection, EMAIL, {"run_id": run_id, **one}) for one in parameters)
        return {"run": run_id, "mail": first, "both": second}


@pytest.mark.parametrize(
    ("sought", "address"),
    [
        ("{run}", "/admin/runs/{run}"),
        (" order:7 ", "/admin/runs/{run}"),
        ("mail:7", "/admin/effects/sent_emails/{mail}"),
        ("<7@MAIL>", "/admin/effects/sent_emails/{mail}"),
        ("shared", "/admin/effects/sent_emails/{both}"),
        ("", "/admin/runs"),
    ],
)
def test_the_only_thing_that_is_found_is_shown(browse: Browse, ids: dict[str, int], sought: str, address: str) -> None:
    assert browse("read").get("/find", q=sought.format(**ids)).address == address.format(**ids)


def test_a_json_object_lists_the_runs_whose_payload_contains_it(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.QUEUED, payload="""'{"invoice_id": 4711, "note": "x"}'""")["id"]
    screen = browse("read").get("/find", q=' {"invoice_id": 4711} ')
    assert screen.address == "/admin/runs?payload=%7B%22invoice_id%22:+4711%7D"
    assert [link for link in screen.links if re.fullmatch(r"/admin/runs/\d+", link)] == [f"/admin/runs/{run_id}"]


def test_a_key_in_braces_is_found_because_it_is_not_json(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.QUEUED, natural_key="'{shop-7}:order'")["id"]
    assert browse("read").get("/find", q="{shop-7}:order").address == f"/admin/runs/{run_id}"


@pytest.mark.parametrize("sought", ["{user_id: 1}", "[1]", "{" * 3000])
def test_other_text_is_sought_as_a_key_and_the_screen_says_how_to_search_payloads(browse: Browse, sought: str) -> None:
    screen = browse("read").get("/find", q=sought)
    assert screen.status == 200
    assert 'To search payloads, type a JSON object, such as {"user_id": 1}' in screen.text


def test_all_that_could_be_meant_are_listed(browse: Browse, ids: dict[str, int]) -> None:
    screen = browse("read").get("/find", q="both")
    assert ("noop" in screen.text, f"/admin/effects/sent_emails/{ids['both']}" in screen.links) == (True, True)
    mails = browse("read").get("/find", q="ada@example.org")
    assert {f"/admin/effects/sent_emails/{ids[name]}" for name in ("mail", "both")} <= {*mails.links}
    assert "No run has this id" in mails.text


@pytest.mark.parametrize("sought", ["nothing", "98765432109876543210", "-1", "\N{SUPERSCRIPT TWO}", "%", "x" * 3000])
def test_nothing_is_found_in_a_sentence(browse: Browse, ids: dict[str, int], sought: str) -> None:
    screen = browse("read").get("/find", q=sought)
    assert screen.status == 200
    assert "No effect has this key, reference, recipient or Message-ID." in screen.text


def test_a_search_that_did_not_reach_all_effects_says_so(
    browse: Browse, ids: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "find_effects", lambda *_: effects.Found([], searched_all=False))
    assert "only in the newest 20,000 of each kind" in browse("read").get("/find", q="somebody").text


def test_a_key_without_read_finds_nothing_by_a_key_or_a_payload(browse: Browse) -> None:
    assert browse("operate").get("/find", q="invoice_charge:1").status == 403
    assert browse("operate").get("/find", q='{"card": "4111"}').status == 403
