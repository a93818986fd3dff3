"""Requests that no browser sends are refused with a sentence, and tell nothing."""

from __future__ import annotations

from typing import Any

import flask
import pytest

from rowcall.access import api_keys
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.status import Status
from rowcall_api.app import create_app
from tests.api.serving import Server, request
from tests.page.conftest import MAKER, Browse
from tests.page.visits import HOST, ORIGIN, Screen, Visit
from tests.support.connections import disconnect
from tests.support.rows import run_in

HERE = f"http://{HOST}"

PAYLOAD = "SELECT payload FROM rowcall.job_runs ORDER BY id DESC LIMIT 1"
RUNS = "SELECT count(*) FROM rowcall.job_runs"


@pytest.mark.parametrize(
    "path",
    ["effects?kind=%00", "failures?job_type=a%00b", "audit?who=%00", "queues/a%00b", "effects/a%00b/1", "runs?key=%00"],
)
def test_a_null_character_in_an_address_is_refused(browse: Browse, path: str) -> None:
    refused = browse("admin").client.get(f"/admin/{path}", base_url=HERE)
    assert (refused.status_code, refused.mimetype, "U+0000" in refused.text) == (400, "text/html", True)


@pytest.mark.parametrize("path", ["queues/mail/limit", "effects/sent_emails/1/resolve", "runs/1/clone"])
def test_a_null_character_in_a_form_is_refused(browse: Browse, path: str) -> None:
    visit = browse("admin")
    refused = visit.post(f"/{path}", max_running="\0", reference="\0", payload="\0")
    assert (refused.status, "U+0000" in refused.text) == (400, True)


def test_an_id_of_thousands_of_digits_is_wrong_and_no_error(browse: Browse) -> None:
    assert "whole number above 0" in browse("admin").get("/audit", subject="run", subject_id="1" * 5000).text


@pytest.mark.parametrize("origin", ["http://[", "http://]", "://", "http://localhost:x", "\u00e9"])
def test_a_malformed_origin_is_refused(app: flask.Flask, origin: str) -> None:
    refused = app.test_client().post(
        "/admin/sign-in", data={"key": "x"}, base_url=HERE, headers={"Origin": origin.encode().decode("latin-1")}
    )
    assert (refused.status_code, "from another site" in refused.text) == (403, True)


def test_who_guesses_keys_is_told_when_to_come_again(module_url: str) -> None:
    app = create_app(module_url)
    client = app.test_client()
    answers = [client.post("/admin/sign-in", data={"key": "guess"}, base_url=HERE, headers=ORIGIN) for _ in range(30)]
    assert {answer.status_code for answer in answers} == {401, 429}
    assert int(answers[-1].headers["Retry-After"]) > 0
    disconnect(app)


@pytest.mark.parametrize(("was", "typed"), [("1", "true"), ("0", "false"), ("1", "1.0"), ("true", "1")])
def test_a_clone_has_the_payload_that_was_typed_even_if_python_calls_it_equal(
    browse: Browse, committed: PgConnection, was: str, typed: str
) -> None:
    run_id = run_in(committed, Status.SUCCEEDED, payload=f"""'{{"flag": {was}}}'""", job_type="'noop'")["id"]
    copy = browse("admin").send(f"/runs/{run_id}", "Enqueue the copy", payload=f'{{"flag": {typed}}}')
    assert copy.status == 200, copy.text
    assert str(fetch_value(committed, f"SELECT payload ->> 'flag' FROM ({PAYLOAD}) AS copy")) == typed


def test_a_key_without_read_cannot_find_out_a_payload_by_cloning(
    app: flask.Flask, module_url: str, committed: PgConnection
) -> None:
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "blind", ["operate", "enqueue"], MAKER)
    run_id = run_in(committed, Status.SUCCEEDED, payload="""'{"pin": 7}'""", job_type="'noop'")["id"]
    visit = Visit(app, key)
    sent: dict[str, Any] = {"csrf": visit.csrf, "once": "same"}
    path = f"/admin/runs/{run_id}/clone"

    def guess(**payload: str) -> int:
        return visit.client.post(path, data={**sent, **payload}, base_url=HERE, headers=ORIGIN).status_code

    assert guess() == 303
    before = fetch_all(committed, RUNS)
    assert {guess(payload=f'{{"pin": {pin}}}') for pin in range(5, 10)} == {422}
    assert fetch_all(committed, RUNS) == before


@pytest.mark.parametrize(("typed", "leads"), [("", "/admin"), ("runs/", "/admin/runs"), ("runs//", "/admin/runs")])
def test_a_slash_at_the_end_of_an_address_leads_to_the_screen(browse: Browse, typed: str, leads: str) -> None:
    led = browse("read").client.get(f"/admin/{typed}", base_url=HERE)
    assert (led.status_code, led.headers["Location"]) == (302, leads)


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("POST", "/admin/nowhere", 404, "There is no screen at this address"),
        ("POST", "/admin/runs", 405, "POST is not allowed here; allowed: GET"),
        ("DELETE", "/admin/runs/1/retry", 405, "DELETE is not allowed here; allowed: POST"),
        ("PUT", "/admin/nowhere/", 404, "There is no screen at this address"),
        ("POST", "/admin", 405, "POST is not allowed here; allowed: GET"),
        ("POST", "/admin/", 404, "There is no screen at this address"),
        ("POST", "/admin//runs", 404, "There is no screen at this address"),
        ("GET", "/admin//runs", 404, "There is no screen at this address"),
    ],
)
def test_what_no_screen_takes_is_refused_in_html(
    browse: Browse, method: str, path: str, status: int, says: str
) -> None:
    visit = browse()
    headers = {**ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
    refused = visit.client.open(path, method=method, base_url=HERE, headers=headers, data={"csrf": visit.csrf})
    assert (refused.status_code, refused.mimetype) == (status, "text/html")
    assert says in Screen(refused).text
    assert ("Allow" in refused.headers) is (status == 405)


def test_who_asks_which_methods_an_address_has_is_not_taken_for_another_site(browse: Browse) -> None:
    asked = browse().client.open("/admin/sign-out", method="OPTIONS", base_url=HERE)
    assert (asked.status_code, "POST" in asked.headers["Allow"]) == (200, True)


def test_a_form_that_ends_in_the_middle_is_refused_in_html(server: Server) -> None:
    form = "Content-Type: application/x-www-form-urlencoded"
    head = request("POST", "/admin/sign-in", "", form, f"Origin: http://{HOST}", "Transfer-Encoding: chunked")
    refused = server.ask(head + b"zz\r\n")
    assert (refused.status, refused.headers["Content-Type"]) == (400, "text/html; charset=utf-8")
    assert b"its chunks are malformed" in refused.body
