"""/v1/effects: the external effects of runs, page by page, and how an operator resolves unknown ones."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from rowcall.access.api_keys import create_key
from rowcall.access.caller import Limits
from rowcall.base.database import PgConnection, connect, fetch_all, fetch_one
from rowcall.effects import KINDS, STATES
from rowcall.status import Status
from tests.api.conftest import MAKER, Call, fields_of, invalid, told
from tests.support.rows import run_in

# Kind -> its table.
TABLES = {**{kind: kind for kind in KINDS}, "sms": "other_effects"}
KEYS = {
    "sent_emails": "idempotency_key",
    "sent_reports": "user_id, week_start_date",
    "payments": "idempotency_key",
    "delivered_webhooks": "event_id",
    "generated_files": "type, date, key",
    "sms": "kind, key",
}
VALUES = {
    "sent_emails": "'mail:' || number",
    "sent_reports": "number, '2026-03-23'",
    "payments": "'charge:' || number",
    "delivered_webhooks": "'evt_' || number",
    "generated_files": "'pdf', '2026-03-23', 'file:' || number",
    "sms": "'sms', 'text:' || number",
}
# In each state alternately, with start times in a different order than the ids.
FILL = """
INSERT INTO rowcall.{table} ({key}, run_id, lease_no, content_hash, state, applied_at, intent_at)
SELECT {values}, 1 + number %% 3, 1, '', state, CASE WHEN state = 'applied' THEN now() END,
    now() - (number * 7919 %% 101) * interval '1 minute'
FROM generate_series(1, %(many)s) AS number
    CROSS JOIN LATERAL (SELECT (ARRAY['intent', 'applied', 'unknown', 'refused'])[1 + number %% 4] AS state) AS its
"""
EACH = 23


@pytest.fixture(scope="module")
def rows(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection to a database in which each kind has some effects in each state."""
    connection = connect(module_url)
    connection.autocommit = True
    for kind, table in TABLES.items():
        fetch_all(connection, FILL.format(table=table, key=KEYS[kind], values=VALUES[kind]), {"many": EACH})
    yield connection
    connection.close()


def pages(call: Call, query: str, limit: int = 10) -> Iterator[list[dict[str, Any]]]:
    """Yield all pages of a list, each fetched when it is needed."""
    cursor = ""
    while True:
        page = told(call("GET", f"/v1/effects?{query}&limit={limit}{cursor}", scope="read"))
        yield page["items"]
        if page["next"] is None:
            return
        cursor = f"&cursor={page['next']}"


def names(items: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(item["kind"], item["id"]) for item in items]


@pytest.mark.parametrize("limit", [1, 7, 200])
def test_following_next_shows_every_effect_once_each_kind_the_newest_first(
    call: Call, rows: PgConnection, limit: int
) -> None:
    seen = list(itertools.chain.from_iterable(names(page) for page in pages(call, "", limit)))
    assert len(seen) == len(set(seen)) == EACH * len(TABLES)
    for kind in TABLES:
        assert [number for name, number in seen if name == kind] == list(range(EACH, 0, -1))


def test_of_what_each_kind_has_next_the_youngest_comes_first(call: Call, rows: PgConnection) -> None:
    items = list(itertools.chain.from_iterable(pages(call, "", 4)))
    while items:
        heads = [next((item for item in items if item["kind"] == kind), None) for kind in TABLES]
        assert items[0]["intent_at"] == max(head["intent_at"] for head in heads if head)
        items.pop(0)


@pytest.mark.parametrize(
    ("query", "kinds", "states", "runs"),
    [
        ("kind=payments", ["payments"], STATES, (1, 2, 3)),
        ("kind=sms", ["sms"], STATES, (1, 2, 3)),
        ("kind=sms&state=unknown,applied&run_id=2", ["sms"], ["unknown", "applied"], (2,)),
        ("state=unknown", TABLES, ["unknown"], (1, 2, 3)),
        ("state=applied&kind=sent_reports", ["sent_reports"], ["applied"], (1, 2, 3)),
        ("state=unknown&state=intent", TABLES, ["unknown", "intent"], (1, 2, 3)),
        ("state=unknown,applied", TABLES, ["unknown", "applied"], (1, 2, 3)),
        ("run_id=2", TABLES, STATES, (2,)),
        ("run_id=2&state=refused,unknown&kind=generated_files", ["generated_files"], ["refused", "unknown"], (2,)),
        ("run_id=999", TABLES, STATES, ()),
    ],
)
def test_filters_leave_what_was_asked_for(
    call: Call, rows: PgConnection, query: str, kinds: list[str], states: list[str], runs: tuple[int, ...]
) -> None:
    every = list(itertools.chain.from_iterable(pages(call, "")))
    found = list(itertools.chain.from_iterable(pages(call, query, 3)))
    wanted = [item for item in every if item["kind"] in kinds and item["state"] in states and item["run_id"] in runs]
    assert sorted(names(found)) == sorted(names(wanted))


def test_a_page_goes_on_where_the_last_one_ended_whatever_came_or_changed_meanwhile(
    call: Call, rows: PgConnection
) -> None:
    walk = pages(call, "", 10)
    seen = names(next(walk))
    fetch_all(rows, "UPDATE rowcall.payments SET intent_at = now() WHERE id = 1")
    fetch_all(rows, FILL.format(table="sent_emails", key=KEYS["sent_emails"], values="'later:' || number"), {"many": 5})
    for page in walk:
        seen += names(page)
    assert sorted(seen) == sorted((kind, number) for kind in TABLES for number in range(1, EACH + 1))
    fetch_all(rows, "DELETE FROM rowcall.sent_emails WHERE idempotency_key LIKE 'later:%%'", {})


@pytest.mark.parametrize("kind", TABLES)
def test_one_effect_is_shown_as_it_is_listed(call: Call, rows: PgConnection, kind: str) -> None:
    [listed] = told(call("GET", f"/v1/effects?kind={kind}&limit=1"))["items"]
    assert listed.items() <= told(call("GET", f"/v1/effects/{kind}/{listed['id']}", scope="read")).items()
    missing = call("GET", f"/v1/effects/{kind}x/{listed['id']}", scope="read")
    assert (missing.status_code, told(missing)["type"]) == (404, "urn:rowcall:problem:not-found")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("kind=mails", "kind"),
        ("kind=other_effects", "kind"),
        ("kind=SMS", "kind"),
        ("kind=", "kind"),
        ("state=done", "state"),
        ("state=", "state"),
        ("state=unknown,", "state"),
        ("run_id=0", "run_id"),
        (f"run_id={2**63}", "run_id"),
        ("run_id=one", "run_id"),
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=-1", "limit"),
        ("colour=red", "colour"),
        ("cursor=", "cursor"),
        ("cursor=here", "cursor"),
        ("cursor=%00", "cursor"),
        (f"cursor={base64.urlsafe_b64encode(bytes(48)).decode()}", "cursor"),
        (f"cursor={base64.urlsafe_b64encode(bytes([0, 1] * 24)).decode()}!", "cursor"),
        (f"cursor={base64.urlsafe_b64encode(bytes(47)).decode()}", "cursor"),
    ],
)
def test_what_cannot_be_asked_is_a_wrong_field(call: Call, query: str, field: str) -> None:
    refused = call("GET", f"/v1/effects?{query}")
    assert (refused.status_code, refused.mimetype) == (422, "application/problem+json")
    assert fields_of(refused) == {field}


@pytest.fixture
def unknown(rows: PgConnection) -> Iterator[dict[str, Any]]:
    """Yield an email with an unknown outcome."""
    run = run_in(rows, Status.DEAD)
    effect = fetch_one(
        rows,
        "INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)"
        " VALUES ('lost', %(run_id)s, 1, '', 'unknown') RETURNING *",
        {"run_id": run["id"]},
    )
    assert effect is not None
    yield effect
    fetch_all(rows, "DELETE FROM rowcall.sent_emails WHERE idempotency_key = 'lost'")


def resolve(call: Call, effect: dict[str, Any], scope: str = "operate", **options: Any) -> Any:
    return call("POST", f"/v1/effects/sent_emails/{effect['id']}/resolve", scope=scope, **options)


@pytest.mark.parametrize(
    ("word", "state", "reference"),
    [
        ({"happened": True, "reference": "queue id 4711"}, "applied", "queue id 4711"),
        ({"happened": True}, "applied", None),
        ({"happened": False}, "refused", None),
    ],
)
def test_an_operators_word_settles_what_nobody_knew_and_is_audited_with_the_request(
    call: Call,
    actors: dict[str, str],
    rows: PgConnection,
    unknown: dict[str, Any],
    word: dict[str, Any],
    state: str,
    reference: str | None,
) -> None:
    settled = resolve(call, unknown, "steer", json=word, headers={"X-Request-Id": f"word-{unknown['id']}"})
    assert settled.status_code == 200
    assert (told(settled)["state"], told(settled)["reference"]) == (state, reference)
    audited = fetch_one(
        rows, "SELECT * FROM rowcall.audit_log WHERE request_id = %(id)s", {"id": f"word-{unknown['id']}"}
    )
    assert audited is not None
    assert (audited["who"], audited["action"], audited["subject_id"]) == (actors["steer"], "resolve", unknown["id"])
    assert (audited["before"]["state"], audited["after"]["state"]) == ("unknown", state)


def test_a_key_that_may_not_read_is_told_of_an_effect_no_more_than_its_state(
    call: Call, unknown: dict[str, Any]
) -> None:
    settled = resolve(call, unknown, json={"happened": True, "reference": "queue id 4711"})
    assert told(settled) == {"kind": "sent_emails", "id": unknown["id"], "state": "applied"}


@pytest.mark.parametrize("pruned", [False, True])
def test_a_key_that_is_limited_to_another_type_settles_nothing(
    call: Call, rows: PgConnection, unknown: dict[str, Any], keys: dict[str, str], pruned: bool
) -> None:
    limits = Limits(["cleanup_nightly"])
    keys["limited"] = create_key(rows, "limited", ["operate"], MAKER, grace=timedelta(), limits=limits)
    if pruned:
        fetch_all(rows, "DELETE FROM rowcall.job_runs WHERE id = %(run_id)s", unknown)
    refused = resolve(call, unknown, "limited", json={"happened": True})
    assert refused.status_code == 403
    assert "limited to the job types cleanup_nightly" in told(refused)["detail"]
    assert fetch_one(rows, "SELECT * FROM rowcall.sent_emails WHERE id = %(id)s", unknown) == unknown
    resolve(call, unknown, json={"happened": True})
    assert told(resolve(call, unknown, "limited", json={"happened": True})) == told(refused)


def test_what_is_settled_can_only_be_corrected(call: Call, unknown: dict[str, Any]) -> None:
    assert told(resolve(call, unknown, json={"happened": False}))["state"] == "refused"
    resolve(call, unknown, json={"happened": True})
    refused = resolve(call, unknown, json={"happened": True})
    assert (refused.status_code, told(refused)["type"]) == (409, "urn:rowcall:problem:effect-not-open")
    assert (told(refused)["current_status"], told(refused)["allowed_events"]) == ("applied", [])


def test_what_a_run_is_at_just_now_is_not_settled_behind_its_back(
    call: Call, rows: PgConnection, unknown: dict[str, Any]
) -> None:
    run = run_in(rows, Status.RUNNING)
    fetch_all(
        rows,
        "UPDATE rowcall.sent_emails SET state = 'intent', run_id = %(run_id)s, lease_no = %(lease_no)s"
        " WHERE id = %(id)s",
        {"run_id": run["id"], "lease_no": run["lease_no"], "id": unknown["id"]},
    )
    refused = resolve(call, unknown, json={"happened": True})
    assert (refused.status_code, told(refused)["current_status"]) == (409, "intent")
    assert f"run {run['id']} is performing effect" in told(refused)["detail"]


@pytest.mark.parametrize(
    "effect", ["sent_emails/0", "sent_emails/999999", f"payments/{2**63}", "mails/1", "payments/x"]
)
def test_what_is_not_there_is_neither_shown_nor_settled(call: Call, effect: str) -> None:
    for method, path in (("POST", f"/v1/effects/{effect}/resolve"), ("GET", f"/v1/effects/{effect}")):
        missing = call(method, path, json={"happened": True})
        assert (missing.status_code, told(missing)["type"]) == (404, "urn:rowcall:problem:not-found")


@pytest.mark.parametrize(
    ("word", "field"),
    [
        ({}, "happened"),
        ({"happened": "yes"}, "happened"),
        ({"happened": 1}, "happened"),
        ({"happened": None}, "happened"),
        ({"happened": False, "reference": "queue id 4711"}, "reference"),
        ({"happened": True, "reference": ""}, "reference"),
        ({"happened": True, "reference": "r" * 256}, "reference"),
        ({"happened": True, "reference": "\0"}, "reference"),
        ({"happened": True, "reference": "\ud800"}, "reference"),
        ({"happened": True, "why": "so"}, "why"),
    ],
)
def test_a_word_that_cannot_be_understood_changes_nothing(
    call: Call, rows: PgConnection, unknown: dict[str, Any], word: dict[str, Any], field: str
) -> None:
    refused = resolve(call, unknown, json=word)
    assert list(invalid(refused)) == [f"/{field}"]
    after = fetch_one(rows, "SELECT * FROM rowcall.sent_emails WHERE id = %(id)s", unknown)
    assert after == unknown


@pytest.mark.parametrize("scope", ["enqueue", "read"])
def test_only_an_operators_key_settles(call: Call, unknown: dict[str, Any], scope: str) -> None:
    assert resolve(call, unknown, scope=scope, json={"happened": True}).status_code == 403
    assert call("GET", "/v1/effects", scope=scope).status_code == (200 if scope == "read" else 403)
