"""Who may enter the page, with what, and from where: screens, forms, and connections that others read."""

from __future__ import annotations

import re
from typing import Any

import flask
import pytest

from rowcall.base.database import PgConnection
from rowcall.status import Status
from rowcall_api.app import create_app
from rowcall_api.page.access import WITHOUT_TLS
from tests.page.addresses import without_ids
from tests.page.conftest import Browse
from tests.page.visits import HOST, ORIGIN, sign_in
from tests.support.connections import disconnect
from tests.support.rows import run_in

HERE = f"http://{HOST}"
ELSEWHERE = "http://jobs.example.com"


def forms(app: flask.Flask) -> list[str]:
    """Return every address that takes a form, with values for its parts."""
    values: dict[str, Any] = {
        "run_id": 1,
        "effect_id": 1,
        "operation_id": 1,
        "key_id": 1,
        "name": "nightly",
        "kind": "sent_emails",
    }
    values |= {"event": "pause", "action": "retry"}
    found = []
    with app.test_request_context(base_url=HERE):
        for rule in app.url_map.iter_rules():
            if not rule.endpoint.startswith("page.") or rule.endpoint in {"page.begin", "page.nowhere"}:
                continue
            if "POST" in (rule.methods or ()):
                events = re.findall(r"any\('([a-z_-]+)'", rule.rule)
                parts = {name: values[name] for name in rule.arguments}
                parts |= dict.fromkeys({"event", "action"} & rule.arguments, events[0] if events else "")
                found.append(flask.url_for(rule.endpoint, **parts))
    assert len(found) >= 10
    return found


def test_no_form_is_taken_from_another_site_or_without_the_sessions_token(app: flask.Flask, browse: Browse) -> None:
    visit, other = browse("admin"), browse("admin")
    for path in forms(app):
        for headers, data in (
            ({}, {"csrf": visit.csrf}),
            ({"Origin": "null"}, {"csrf": visit.csrf}),
            ({"Origin": "http://evil.example"}, {"csrf": visit.csrf}),
            ({"Origin": f"http://{HOST}.evil.example"}, {"csrf": visit.csrf}),
            (ORIGIN, {}),
            (ORIGIN, {"csrf": ""}),
            (ORIGIN, {"csrf": other.csrf}),
            (ORIGIN, {"csrf": "ü"}),
        ):
            refused = visit.client.post(path, data=data, headers=headers, base_url=HERE)
            assert (refused.status_code, "nothing was changed" in refused.text) == (403, True), (path, headers, data)
    assert sign_in(app, data={"key": "x"}, headers={"Origin": "http://evil.example"}).status_code == 403


def test_only_admins_and_operators_send_what_their_scopes_allow(app: flask.Flask, browse: Browse) -> None:
    reader = browse("read")
    for path in forms(app):
        if path != "/admin/sign-out":
            refused = reader.client.post(path, data={"csrf": reader.csrf}, headers=ORIGIN, base_url=HERE)
            assert (refused.status_code, "lacks the scope" in refused.text) == (403, True), path
    assert browse("operator").client.get("/admin/keys", base_url=HERE).status_code == 403
    assert "Keys" not in browse("operator").get("/runs").text.split("Runs")[0]


def test_without_tls_on_an_address_of_the_network_the_page_is_read_only_unless_a_setting_says_otherwise(
    app: flask.Flask, keys: dict[str, str], committed: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_in(committed, Status.DEAD)["id"]
    client = app.test_client()
    origin = {"Origin": ELSEWHERE}
    client.post("/admin/sign-in", data={"key": keys["operator"]}, headers=origin, base_url=ELSEWHERE)
    screen = client.get(f"/admin/runs/{run_id}", base_url=ELSEWHERE).text
    assert "read-only, because your connection" in screen
    assert f"Retry run {run_id}" not in screen
    [csrf] = set(re.findall(r'name="csrf" value="([0-9a-f]+)"', screen))
    sent = {"data": {"csrf": csrf}, "headers": origin, "base_url": ELSEWHERE}
    refused = client.post(f"/admin/runs/{run_id}/retry", **sent)
    assert (refused.status_code, "ROWCALL_PAGE_WITHOUT_TLS" in refused.text) == (403, True)
    monkeypatch.setitem(app.extensions, WITHOUT_TLS, True)
    assert f"Retry run {run_id}" in client.get(f"/admin/runs/{run_id}", base_url=ELSEWHERE).text
    assert client.post(f"/admin/runs/{run_id}/retry", **sent).status_code == 303


@pytest.mark.parametrize(
    ("sender", "proto", "private"),
    [
        ("192.0.2.7", "https", True),
        ("127.0.0.1", "https", True),
        ("192.0.2.7", "http", False),
        ("192.0.2.7", "https, http", False),
        ("198.51.100.9", "https", False),
    ],
)
def test_only_a_trusted_proxy_or_one_on_this_machine_can_say_that_the_connection_is_encrypted(
    module_url: str, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch, sender: str, proto: str, private: bool
) -> None:
    monkeypatch.setenv("ROWCALL_TRUSTED_PROXIES", "192.0.2.0/24")
    app = create_app(module_url)
    options: dict[str, Any] = {
        "base_url": ELSEWHERE,
        "headers": {"Origin": ELSEWHERE, "X-Forwarded-Proto": proto},
        "environ_base": {"REMOTE_ADDR": sender},
    }
    client = app.test_client()
    begun = client.post("/admin/sign-in", data={"key": keys["read"]}, **options)
    assert ("Secure" in begun.headers["Set-Cookie"]) is private
    disconnect(app)


def test_every_response_lets_only_the_pages_own_files_run_and_nobody_frame_it(app: flask.Flask, browse: Browse) -> None:
    visit = browse("admin")
    seen = set()
    for path in [*without_ids(app), "/admin/nowhere", "/admin/runs/999999", "/admin/sign-in"]:
        response = visit.client.get(path, base_url=HERE)
        policy = response.headers["Content-Security-Policy"]
        [nonce] = set(re.findall(r"'nonce-([^']+)'", policy))
        assert nonce not in seen
        seen.add(nonce)
        assert {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy.split("; "))
        assert "unsafe" not in policy
        assert response.headers["X-Frame-Options"] == "DENY"
        if response.mimetype == "text/html":
            assert response.headers["Cache-Control"] == "no-store"
            assert " style=" not in response.text
            assert all(
                f'nonce="{nonce}"' in tag
                for tag in re.findall(r"<(?:script|link rel=\"stylesheet\")[^>]*>", response.text)
            )


def test_the_name_of_the_environment_is_on_every_screen_in_its_colour(app: flask.Flask, browse: Browse) -> None:
    visit = browse("admin")
    for path in [*without_ids(app), "/admin/nowhere", "/admin/sign-in"]:
        response = visit.client.get(path, base_url=HERE)
        if response.mimetype == "text/html" and response.status_code != 302:
            assert 'data-colour="amber"' in response.text, path
            assert ">staging<" in response.text, path


def test_who_may_operate_but_not_read_finds_a_run_by_its_id_and_sees_only_shapes(
    browse: Browse, committed: PgConnection
) -> None:
    run_id = run_in(committed, Status.DEAD, payload="""'{"card": "4111"}'""")["id"]
    visit = browse("operate")
    first = visit.get()
    assert (first.status, "Type the id of a run" in first.text) == (200, True)
    assert "/admin/runs" not in first.links
    found = visit.get("/find", q=str(run_id))
    assert (found.address, "4111" in found.html, '"card": "text"' in found.text) == (
        f"/admin/runs/{run_id}",
        False,
        True,
    )
    assert visit.get("/find", q="invoice:1").status == 403
