"""Operators sign in with a key or a link, and their sessions end: with time, their key, or when they sign out."""

from __future__ import annotations

import hashlib
import hmac

import flask
import pytest

from rowcall.access import api_keys
from rowcall.access.page_sessions import ENCRYPTED, make_link
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall_api.page.access import COOKIE, SECURE_COOKIE
from tests.page.addresses import without_ids
from tests.page.conftest import MAKER, Browse
from tests.page.visits import HOST, ORIGIN, Visit, sign_in

HERE = f"http://{HOST}"


def test_without_a_session_every_screen_leads_to_the_sign_in_and_back(app: flask.Flask) -> None:
    client = app.test_client()
    for path in without_ids(app):
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
    secure = sign_in(app, f"https://{HOST}", data={"key": keys["read"]}).headers["Set-Cookie"]
    assert secure.startswith("__Secure-rowcall_session=")
    assert "Secure;" in secure


def test_a_session_begun_over_a_plain_connection_is_not_believed_over_an_encrypted_one(
    app: flask.Flask, keys: dict[str, str]
) -> None:
    plain, encrypted = f"http://{HOST}", f"https://{HOST}"
    client = app.test_client()
    client.post("/admin/sign-in", base_url=plain, headers={"Origin": plain}, data={"key": keys["read"]})
    assert client.get("/admin/runs", base_url=plain).status_code == 200
    assert client.get("/admin/runs", base_url=encrypted).status_code == 302


def test_who_read_a_cookie_of_a_plain_connection_cannot_send_it_over_an_encrypted_one_by_any_name(
    app: flask.Flask, keys: dict[str, str]
) -> None:
    read = sign_in(app, data={"key": keys["operator"]}).headers["Set-Cookie"].split("=", 1)[1].split(";")[0]
    for value in (read, f"{ENCRYPTED}{read}"):
        thief = app.test_client()
        for name in (COOKIE, SECURE_COOKIE):
            thief.set_cookie(name, value, domain=HOST, path="/admin", secure=True)
        assert thief.get("/admin/runs", base_url=f"https://{HOST}").status_code == 302


def test_signing_out_over_an_encrypted_connection_removes_its_cookie(app: flask.Flask, keys: dict[str, str]) -> None:
    client, base = app.test_client(), f"https://{HOST}"
    client.post("/admin/sign-in", base_url=base, headers={"Origin": base}, data={"key": keys["read"]})
    kept = client.get_cookie("__Secure-rowcall_session", HOST, "/admin")
    assert kept is not None
    csrf = hmac.digest(kept.value.encode(), b"form", hashlib.sha256).hex()
    out = client.post("/admin/sign-out", base_url=base, headers={"Origin": base}, data={"csrf": csrf})
    assert out.status_code == 303
    assert client.get_cookie("__Secure-rowcall_session", HOST, "/admin") is None


def test_a_link_signs_in_over_an_encrypted_connection_too(
    app: flask.Flask, module_url: str, keys: dict[str, str]
) -> None:
    client, base = app.test_client(), f"https://{HOST}"
    with database.transaction(module_url) as connection:
        link = make_link(connection, api_keys.id_of(connection, keys["read"]))
    assert client.get(f"/admin/link/{link}", base_url=base).status_code == 303
    assert client.get("/admin/runs", base_url=base).status_code == 200


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
