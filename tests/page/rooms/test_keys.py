"""Keys on the page: created with scopes, limits and an expiry, rotated, revoked, and refused at the field."""

from __future__ import annotations

import re
from datetime import timedelta

import flask
import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.access.caller import Limits
from rowcall.base.database import PgConnection, Row, fetch_value
from tests.page.conftest import Browse
from tests.page.visits import Screen, Visit

MAKER = Operator("tests")
BUTTON = "Create the key"


def named(connection: PgConnection, name: str) -> Row:
    [row] = [row for row in api_keys.list_keys(connection) if row["name"] == name and not row["replaced_at"]]
    return row


def secret(shown: Screen) -> str:
    """Return the key that a screen shows."""
    [key] = set(re.findall(r"rc_[0-9a-f]{8}_[0-9a-f]{64}", shown.text))
    return str(key)


def test_a_key_is_created_with_scopes_limits_and_an_expiry_and_is_shown_once(
    browse: Browse, committed: PgConnection
) -> None:
    admin = browse("admin")
    shown = admin.send(
        "/keys",
        BUTTON,
        name="billing",
        scope=["enqueue", "read"],
        job_types="noop, send_invoice_email",
        queues="mail",
        expires_at="90 days",
    )
    caller = api_keys.find_caller(committed, secret(shown))
    assert caller is not None
    assert (caller.name, sorted(caller.scopes)) == ("billing", ["enqueue", "read"])
    row = named(committed, "billing")
    assert (row["job_types"], row["queues"]) == (["noop", "send_invoice_email"], ["mail"])
    assert timedelta(days=89) < row["expires_at"] - row["created_at"] < timedelta(days=91)
    listed = admin.get("/keys")
    assert secret(shown) not in listed.html
    assert "only noop, send_invoice_email" in listed.text


def test_a_key_without_limits_and_expiry_has_none(browse: Browse, committed: PgConnection) -> None:
    browse("admin").send("/keys", BUTTON, name="plain", scope="read")
    row = named(committed, "plain")
    assert (row["job_types"], row["queues"], row["expires_at"]) == (None, None, None)


@pytest.mark.parametrize(
    ("sent", "field", "why"),
    [
        ({"name": "-"}, "name", "Must be 1 to 100 letters, digits, spaces"),
        ({"name": "test admin"}, "name", "has the name"),
        ({"scope": []}, "scopes", "Must be one or more of enqueue, read, operate, admin"),
        ({"scope": "all"}, "scopes", "Must be one of: enqueue"),
        ({"job_types": "Send-Mail"}, "job_types", "Must be lower-case words such as send_mail, not Send-Mail"),
        ({"job_types": "send_mial"}, "job_types", "There is no job type"),
        ({"queues": "no_such_queue"}, "queues", "There is no queue"),
        ({"expires_at": "soon"}, "expires_at", "is not a time"),
        ({"expires_at": "2020-01-01"}, "expires_at", "must expire in the future"),
        ({"expires_at": "1999-01-01"}, "expires_at", "Must be a time in the years"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_is_kept(
    browse: Browse, committed: PgConnection, sent: dict[str, str | list[str]], field: str, why: str
) -> None:
    refused = browse("admin").send("/keys", BUTTON, **{"name": "refused", "scope": "read", **sent})
    assert refused.status == 422
    told = refused.html.split(f'id="{field}-wrong">')[1].split("</span>")[0]
    assert why in told
    assert refused.html.count('class="wrong"') == 1
    assert all(
        f'value="{typed}"' in refused.html for typed in sent.values() if isinstance(typed, str) and typed != "all"
    )
    assert "refused" not in {row["name"] for row in api_keys.list_keys(committed)}


def test_a_rotated_key_is_replaced_and_valid_for_as_long_as_the_form_says(
    browse: Browse, committed: PgConnection
) -> None:
    old = api_keys.create_key(committed, "rotated", ["read"], MAKER)
    shown = browse("admin").send("/keys", "Rotate the key rotated", hours="2")
    assert "The old key is valid until" in shown.text
    assert api_keys.find_caller(committed, old) is not None
    assert api_keys.find_caller(committed, secret(shown)) is not None
    [replaced] = [row for row in api_keys.list_keys(committed) if row["name"] == "rotated" and row["replaced_at"]]
    left = fetch_value(committed, "SELECT %(ends)s - now() < interval '121 minutes'", {"ends": replaced["expires_at"]})
    assert left is True


@pytest.mark.parametrize("hours", ["-1", "721", "x", "1.5", "9999999999"])
def test_wrong_hours_change_nothing(browse: Browse, committed: PgConnection, hours: str) -> None:
    with_it = api_keys.create_key(committed, f"hours {hours.strip('-')}", ["read"], MAKER)
    refused = browse("admin").send("/keys", f"Rotate the key hours {hours.strip('-')}", hours=hours)
    assert (refused.status, "whole number from 0 to 720" in refused.text) == (400, True)
    assert named(committed, f"hours {hours.strip('-')}")["prefix"] == with_it.split("_")[1]


def test_a_revoked_key_is_refused_at_once_and_its_sessions_end(
    browse: Browse, committed: PgConnection, app: flask.Flask
) -> None:
    key = api_keys.create_key(committed, "revoked", ["read"], MAKER)
    visitor = Visit(app, key)
    assert visitor.get("/workers").status == 200
    shown = browse("admin").send("/keys", "Revoke the key revoked")
    assert "The key is revoked." in shown.text
    assert "Revoke the key revoked" not in shown.forms
    assert visitor.get("/workers").address.startswith("/admin/sign-in")


def test_a_limited_admin_creates_and_ends_only_keys_within_its_limits(
    browse: Browse, committed: PgConnection, app: flask.Flask
) -> None:
    limited = Visit(app, api_keys.create_key(committed, "limited", ["admin"], MAKER, limits=Limits(["noop"])))
    wide = limited.send("/keys", BUTTON, name="wide", scope="read")
    assert wide.status == 403
    assert limited.send("/keys", BUTTON, name="narrow", scope="read", job_types="noop").status == 200
    victim = named(committed, "test read")["id"]
    assert limited.post(f"/keys/{victim}/revoke").status == 403
    assert named(committed, "test read")["state"] == "active"


def test_a_key_that_expires_creates_none_that_lives_longer(committed: PgConnection, app: flask.Flask) -> None:
    ends = fetch_value(committed, "SELECT now() + interval '1 day'")
    brief = Visit(app, api_keys.create_key(committed, "brief", ["admin"], MAKER, ends))
    refused = brief.send("/keys", BUTTON, name="longer", scope="read", expires_at="2 days")
    assert refused.status == 422
    assert "cannot be valid for longer" in refused.html.split('id="expires_at-wrong">')[1]


@pytest.mark.parametrize("path", ["/keys", "/keys/1/rotate", "/keys/1/revoke"])
@pytest.mark.parametrize("scope", ["read", "operator"])
def test_only_admins_see_and_change_keys(browse: Browse, scope: str, path: str) -> None:
    visitor = browse(scope)
    assert visitor.get("/keys").status == 403
    assert visitor.post(path, name="mine", scope="admin").status == 403
