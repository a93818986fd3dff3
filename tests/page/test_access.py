"""Who may enter the page, with what, and from where: keys, links, sessions, forms, and connections that others read."""

from __future__ import annotations

import re
from typing import Any

import flask
import pytest
from werkzeug.test import TestResponse

from rowcall.access import api_keys
from rowcall.access.page_sessions import make_link
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.status import Status
from rowcall_api.app import create_app
from rowcall_api.page.access import COOKIE, WITHOUT_TLS
from tests.page.conftest import MAKER, Browse
from tests.page.visits import HOST, ORIGIN, Visit
from tests.support.connections import disconnect
from tests.support.rows import run_in

HERE = f"http://{HOST}"
ELSEWHERE = "http://jobs.example.com"


def screens(app: flask.Flask) -> list[str]:
    """Return the addresses of the screens that need no id."""
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint.startswith("page.")]
    return sorted(
        str(rule)
        for rule in rules
        if not rule.arguments and "GET" in (rule.methods or ()) and "sign-in" not in str(rule)
    )


def sign_in(app: flask.Flask, base: str = HERE, **options: Any) -> TestResponse:
    """Send the form of the sign-in screen."""
    headers = {"Origin": base, **options.pop("headers", {})}
    return app.test_client().post("/admin/sign-in", base_url=base, headers=headers, **options)


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
            if rule.endpoint.startswith("page.") and "POST" in (rule.methods or ()) and rule.endpoint != "page.begin":
                events = re.findall(r"any\('([a-z_-]+)'", rule.rule)
                parts = {name: values[name] for name in rule.arguments}
                parts |= dict.fromkeys({"event", "action"} & rule.arguments, events[0] if events else "")
                found.append(flask.url_for(rule.endpoint, **parts))
    assert len(found) >= 10
    return found


def test_without_a_session_every_screen_leads_to_the_sign_in_and_back(app: flask.Flask) -> None:
    client = app.test_client()
    for path in screens(app):
        led = client.get(path, base_url=HERE)
        assert led.status_code == 302, path
        assert led.headers["Location"].startswith("/admin/sign-in")
    assert "/admin/runs" in client.get("/admin/runs?status=dead", base_url=HERE).headers["Location"]


def test_after_signing_in_the_screen_that_was_asked_for_is_shown_and_no_address_of_another_site(
    app: flask.Flask, keys: dict[str, str]
) -> None:
    for to, leads in (
        ("/admin/runs?status=dead", "/admin/runs?status=dead"),
        ("https://evil.example", "/admin"),
        ("//evil.example/admin", "/admin"),
        ("/admin\\@evil.example", "/admin"),
        ("/admin/\r\nSet-Cookie: a=b", "/admin"),
        ("/administrator", "/admin"),
    ):
        begun = sign_in(app, data={"key": keys["read"], "to": to})
        assert (begun.status_code, begun.headers["Location"]) == (303, leads)


def test_a_wrong_key_is_told_apart_from_one_that_may_only_enqueue_and_begins_no_session(
    app: flask.Flask, keys: dict[str, str]
) -> None:
    for key, status, words in (
        ("rc_00000000_" + "0" * 64, 401, "unknown, expired or revoked"),
        ("nonsense", 401, "unknown, expired or revoked"),
        ("", 401, "unknown, expired or revoked"),
        (keys["enqueue"], 403, "may only enqueue"),
    ):
        refused = sign_in(app, data={"key": key})
        assert (refused.status_code, "Set-Cookie" in refused.headers) == (status, False)
        assert words in refused.text
        assert key[12:] not in refused.text or not key[12:]


def test_the_cookie_is_kept_from_scripts_other_sites_and_plain_connections(
    app: flask.Flask, keys: dict[str, str]
) -> None:
    plain = sign_in(app, data={"key": keys["read"]}).headers["Set-Cookie"]
    assert all(word in plain for word in ("HttpOnly", "SameSite=Lax", "Path=/admin", "Max-Age=43200"))
    assert "Secure" not in plain
    assert "Secure" in sign_in(app, f"https://{HOST}", data={"key": keys["read"]}).headers["Set-Cookie"]


def test_only_the_hash_of_a_session_is_stored_and_signing_in_is_audited(
    app: flask.Flask, keys: dict[str, str], committed: PgConnection
) -> None:
    cookie = sign_in(app, data={"key": keys["read"]}).headers["Set-Cookie"]
    token = cookie.split("=", 1)[1].split(";")[0]
    rows = database.fetch_all(committed, "SELECT token_sha256::text AS hash FROM rowcall.page_sessions")
    assert token not in str(rows)
    [last] = database.fetch_all(
        committed, "SELECT who, action, subject FROM rowcall.audit_log ORDER BY id DESC LIMIT 1"
    )
    assert (last["who"].split(" (")[0], last["action"], last["subject"]) == ("api:test read", "sign in", "key")


@pytest.mark.parametrize(
    "end",
    [
        "UPDATE rowcall.page_sessions SET expires_at = now()",
        "DELETE FROM rowcall.page_sessions",
        "UPDATE rowcall.api_keys SET revoked_at = now() WHERE name = 'short'",
        "UPDATE rowcall.api_keys SET expires_at = now() WHERE name = 'short'",
    ],
)
def test_a_session_ends_with_its_time_or_its_key(
    app: flask.Flask, committed: PgConnection, module_url: str, end: str
) -> None:
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "short", ["read", "operate"], MAKER)
    visit = Visit(app, key)
    csrf = visit.csrf
    assert visit.client.get("/admin/runs", base_url=HERE).status_code == 200
    database.fetch_all(committed, end)
    assert "Your session has ended" in visit.get("/runs").text
    sent = visit.client.post("/admin/queues/mail/pause", data={"csrf": csrf}, headers=ORIGIN, base_url=HERE)
    assert (sent.status_code, "your session has ended" in sent.text.lower()) == (401, True)
    assert "WWW-Authenticate" not in sent.headers
    database.fetch_all(committed, "UPDATE rowcall.api_keys SET revoked_at = now() WHERE name = 'short'")


def test_signing_out_ends_the_session_in_the_database_too(app: flask.Flask, browse: Browse) -> None:
    visit = browse("read")
    kept = visit.client.get_cookie(COOKIE, HOST, "/admin")
    assert kept is not None
    assert visit.post("/sign-out").address == "/admin/sign-in"
    again = app.test_client()
    again.set_cookie(COOKIE, kept.value, domain=HOST, path="/admin")
    assert again.get("/admin/runs", base_url=HERE).status_code == 302


def test_a_link_signs_in_once_and_soon(app: flask.Flask, module_url: str, committed: PgConnection) -> None:
    with database.transaction(module_url) as connection:
        key_id = api_keys.id_of(connection, api_keys.create_key(connection, "linked", ["read"], MAKER))
        first, late = make_link(connection, key_id), make_link(connection, key_id)
    client = app.test_client()
    client.set_cookie(COOKIE, first, domain=HOST, path="/admin")
    assert client.get("/admin", base_url=HERE).status_code == 302, "a link is not a session"
    assert client.head(f"/admin/link/{first}", base_url=HERE).status_code == 200, "a program that only looks"
    followed = client.get(f"/admin/link/{first}", base_url=HERE)
    assert (followed.status_code, followed.headers["Location"]) == (303, "/admin")
    assert client.get("/admin", base_url=HERE).status_code == 200
    assert client.get(f"/admin/link/{first}", base_url=HERE).headers["Location"] == "/admin", "used, but signed in"
    database.fetch_all(committed, "UPDATE rowcall.page_sessions SET expires_at = now() WHERE is_link")
    for token in (first, late, "x" * 43, "nonsense"):
        refused = app.test_client().get(f"/admin/link/{token}", base_url=HERE)
        assert (refused.status_code, "used, or is older" in refused.text) == (403, True)


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
    for path in [*screens(app), "/admin/nowhere", "/admin/runs/999999", "/admin/sign-in"]:
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
    for path in [*screens(app), "/admin/nowhere", "/admin/sign-in"]:
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
