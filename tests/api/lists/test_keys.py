"""/v1/keys: keys are listed without their secrets, created, rotated and revoked; each key can see itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import flask
import pytest

from rowcall.access import api_keys
from rowcall.access.caller import Limits
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.base.errors import FilterInvalid
from rowcall.queue.views.keys import keys_page
from rowcall_api.app import create_app
from tests.api.conftest import MAKER, Call, told

NUMBERS = itertools.count(1)

NEVER_SHOWN = {"secret_sha256"}


@pytest.fixture(scope="module")
def rows(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection to the module's database."""
    connection = database.connect(module_url)
    connection.autocommit = True
    yield connection
    connection.close()


def created(call: Call, **fields: Any) -> dict[str, Any]:
    """Create a key with a new name."""
    answer = call("POST", "/v1/keys", json={"name": f"key {next(NUMBERS)}", "scopes": ["read"], **fields})
    assert answer.status_code == 201, answer.text
    return told(answer)


def works(app: flask.Flask, key: str) -> bool:
    answer = app.test_client().get("/v1/keys/me", headers={"Authorization": f"Bearer {key}"})
    return answer.status_code == 200


def test_a_created_key_works_and_its_secret_is_shown_once(app: flask.Flask, call: Call, rows: PgConnection) -> None:
    ends = "2090-01-01T00:00:00+00:00"
    made = created(call, scopes=["read", "enqueue", "read"], job_types=["noop"], queues=["default"], expires_at=ends)
    assert works(app, made["key"])
    assert (made["scopes"], made["job_types"], made["queues"]) == (["read", "enqueue"], ["noop"], ["default"])
    assert (made["state"], made["expires_at"]) == ("expires", ends)
    for listed in told(call("GET", "/v1/keys"))["items"]:
        assert not {"key", *NEVER_SHOWN} & listed.keys()
    assert made["key"].split("_")[2] not in call("GET", "/v1/keys").text
    stored = fetch_value(rows, "SELECT secret_sha256 FROM rowcall.api_keys WHERE id = %(id)s", made)
    assert made["key"].split("_")[2].encode() not in bytes(stored)


def test_a_name_belongs_to_one_valid_key(call: Call, refused: Call) -> None:
    made = created(call)
    answer = refused("POST", "/v1/keys", 409, json={"name": made["name"], "scopes": ["admin"]})
    assert told(answer)["type"] == "urn:rowcall:problem:key-name-taken"
    assert f"key {made['id']} has the name" in told(answer)["detail"]
    call("POST", f"/v1/keys/{made['id']}/revoke")
    assert created(call, name=made["name"])["id"] > made["id"]


def test_a_lost_answer_is_made_good_by_a_rotation_without_grace(app: flask.Flask, call: Call) -> None:
    lost = created(call)
    rotated = told(call("POST", f"/v1/keys/{lost['id']}/rotate", json={"grace_seconds": 0}))
    assert (works(app, lost["key"]), works(app, rotated["key"])) == (False, True)


def test_a_rotated_key_has_the_rights_of_the_old_one_which_works_until_the_grace_is_over(
    app: flask.Flask, call: Call
) -> None:
    old = created(call, scopes=["operate"], queues=["default"])
    new = told(call("POST", f"/v1/keys/{old['id']}/rotate"))
    assert (new["name"], new["scopes"], new["queues"], new["replaces"]) == (
        old["name"],
        ["operate"],
        ["default"],
        old["id"],
    )
    assert works(app, old["key"])
    assert works(app, new["key"])
    ends = datetime.fromisoformat(new["old_ends_at"]) - datetime.fromisoformat(new["created_at"])
    assert ends == timedelta(days=1)


def test_a_revoked_key_ends_at_once_and_is_not_revoked_again(app: flask.Flask, call: Call, refused: Call) -> None:
    made = created(call)
    revoked = told(call("POST", f"/v1/keys/{made['id']}/revoke"))
    assert (revoked["state"], revoked["revoked_at"] is not None, "key" in revoked) == ("revoked", True, False)
    assert not works(app, made["key"])
    for action in ("revoke", "rotate"):
        answer = refused("POST", f"/v1/keys/{made['id']}/{action}", 409)
        assert told(answer)["type"] == "urn:rowcall:problem:key-ended"


def test_a_key_that_was_replaced_is_not_replaced_again_but_can_be_revoked(call: Call, refused: Call) -> None:
    made = created(call)
    call("POST", f"/v1/keys/{made['id']}/rotate")
    assert "already been replaced" in told(refused("POST", f"/v1/keys/{made['id']}/rotate", 409))["detail"]
    assert told(call("POST", f"/v1/keys/{made['id']}/revoke"))["state"] == "revoked"


@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_a_key_that_is_not_there_is_not_found(refused: Call, action: str) -> None:
    refused("POST", f"/v1/keys/{2**63 - 1}/{action}", 404)
    refused("POST", f"/v1/keys/me/{action}", 404)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "cli:ada"}, "name"),
        ({"name": "a\n"}, "name"),
        ({"name": "n" * 101}, "name"),
        ({"name": None}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes"),
        ({"scopes": "read"}, "scopes"),
        ({"job_types": []}, "job_types"),
        ({"job_types": ["E-Mail"]}, "job_types"),
        ({"queues": []}, "queues"),
        ({"queues": ["paymets"]}, "queues"),
        ({"queues": ["q" * 64]}, "queues"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "90d"}, "expires_at"),
        ({"secret": "mine"}, "secret"),
    ],
)
def test_a_key_that_cannot_be_is_refused_by_its_field(refused: Call, fields: dict[str, Any], field: str) -> None:
    refused("POST", "/v1/keys", 422, field, json={"name": "refused", "scopes": ["read"], **fields})


def test_a_key_is_not_limited_to_a_job_type_that_nobody_declares(refused: Call) -> None:
    sent = {"name": "refused", "scopes": ["read"], "job_types": ["chrage_invoice"]}
    refused("POST", "/v1/keys", 422, "/job_types/0", json=sent)


@pytest.mark.parametrize("grace", [-1, 366 * 24 * 3600 + 1, 10**30, 1.5, "1h", None, True])
def test_a_grace_is_a_number_of_seconds_up_to_a_year(call: Call, refused: Call, grace: object) -> None:
    made = created(call)
    refused("POST", f"/v1/keys/{made['id']}/rotate", 422, "grace_seconds", json={"grace_seconds": grace})


def test_each_change_is_audited_with_the_request_and_no_secret(
    call: Call, actors: dict[str, str], rows: PgConnection
) -> None:
    asked = {"X-Request-Id": "keys-1"}
    made = told(call("POST", "/v1/keys", json={"name": "audited", "scopes": ["read"]}, headers=asked))
    rotated = told(call("POST", f"/v1/keys/{made['id']}/rotate", headers=asked))
    call("POST", f"/v1/keys/{made['id']}/revoke", headers=asked)
    audited = fetch_all(rows, "SELECT * FROM rowcall.audit_log WHERE request_id = 'keys-1' ORDER BY id")
    assert [row["action"] for row in audited] == ["create", "create", "rotate", "revoke"]
    assert {(row["who"], row["subject"]) for row in audited} == {(actors["admin"], "key")}
    for key in (made["key"], rotated["key"]):
        assert key.split("_")[2] not in str(audited)


@pytest.mark.parametrize("scope", [*api_keys.SCOPES, "steer"])
def test_any_key_can_see_itself(call: Call, actors: dict[str, str], scope: str) -> None:
    own = told(call("GET", "/v1/keys/me", scope=scope))
    assert f"api:{own['name']} ({own['prefix']})" == actors[scope]
    assert own["scopes"] == (["operate", "enqueue", "read"] if scope == "steer" else [scope])
    assert (own["job_types"], own["queues"], own["expires_at"], own["rate_limit"]) == (None, None, None, None)
    assert "key" not in own


def test_a_key_sees_the_rate_limit_that_the_headers_report(
    module_url: str, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"LIMIT": "5", "BURST": "40"}.items():
        monkeypatch.setenv(f"ROWCALL_RATE_{name}", value)
    monkeypatch.setenv("ROWCALL_API_WORKERS", "2")
    app = create_app(module_url)
    answer = app.test_client().get("/v1/keys/me", headers={"Authorization": f"Bearer {keys['enqueue']}"})
    assert told(answer)["rate_limit"] == {"quota": 20, "window": 8}
    assert answer.headers["RateLimit-Policy"] == '"key";q=20;w=8'
    app.extensions["database"].dispose()


@pytest.mark.parametrize("scope", ["enqueue", "read", "operate"])
def test_only_an_admins_key_manages_keys(call: Call, refused: Call, scope: str) -> None:
    made = created(call)
    refused("GET", "/v1/keys", 403, scope=scope)
    refused("POST", "/v1/keys", 403, scope=scope, json={"name": "mine", "scopes": ["read"]})
    for action in ("rotate", "revoke"):
        refused("POST", f"/v1/keys/{made['id']}/{action}", 403, scope=scope)


def test_a_limited_admins_key_makes_and_manages_no_key_that_may_do_more(
    call: Call, refused: Call, rows: PgConnection, keys: dict[str, str]
) -> None:
    limits = Limits(["noop", "prune_runs"], ["default"])
    keys["limited"] = api_keys.create_key(rows, "limited admin", ["admin"], MAKER, limits=limits)
    for more in ({}, {"job_types": ["noop"]}, {"queues": ["default"]}, {"job_types": ["expire_keys"]}):
        wider = {"scopes": ["read"], "name": "wider", **more}
        refused("POST", "/v1/keys", 403, scope="limited", json=wider)
    unlimited = created(call)
    for action in ("rotate", "revoke"):
        refused("POST", f"/v1/keys/{unlimited['id']}/{action}", 403, scope="limited")
    narrower = {"name": "narrower", "scopes": ["admin"], "job_types": ["noop"], "queues": ["default"]}
    made = told(call("POST", "/v1/keys", scope="limited", json=narrower))
    assert call("POST", f"/v1/keys/{made['id']}/rotate", scope="limited").status_code == 200


def test_an_expiring_admins_key_makes_and_rotates_no_key_that_outlives_it(
    call: Call, refused: Call, rows: PgConnection, keys: dict[str, str]
) -> None:
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(days=7)
    keys["expiring"] = api_keys.create_key(rows, "expiring admin", ["admin"], MAKER, ends)
    longer = {"name": "longer", "scopes": ["admin"]}
    for more in ({}, {"expires_at": None}, {"expires_at": (ends + timedelta(seconds=1)).isoformat()}):
        answer = refused("POST", "/v1/keys", 422, "expires_at", scope="expiring", json={**longer, **more})
        assert told(answer)["errors"][0]["detail"] == (
            f"the key of this request expires at {ends.isoformat()}, and a key that it creates cannot be valid for"
            " longer: set expires_at to this time or an earlier one"
        )
    same = {"name": "as long", "scopes": ["admin"], "expires_at": ends.isoformat()}
    made = call("POST", "/v1/keys", scope="expiring", json=same)
    assert (made.status_code, told(made)["expires_at"]) == (201, ends.isoformat())
    # A rotated key lasts as long again as its predecessor.
    for key_id in (created(call)["id"], api_keys.id_of(rows, keys["expiring"])):
        answer = refused("POST", f"/v1/keys/{key_id}/rotate", 403, scope="expiring")
        assert f"expires at {ends.isoformat()}, and the new key would be valid for longer" in told(answer)["detail"]
    short = created(call, expires_at=(ends - timedelta(days=6)).isoformat())
    assert call("POST", f"/v1/keys/{short['id']}/rotate", scope="expiring").status_code == 200


@pytest.mark.parametrize(("limit", "page_bytes"), [(1, 2**20), (3, 2**20), (200, 1)])
def test_following_next_lists_every_key_once_the_newest_first(
    call: Call, rows: PgConnection, limit: int, page_bytes: int
) -> None:
    created(call)
    seen, cursor = [], None
    while True:
        page, cursor = keys_page(rows, limit, cursor, page_bytes)
        seen += [row["id"] for row in page]
        if cursor is None:
            break
    assert seen == [row["id"] for row in reversed(api_keys.list_keys(rows))]


def test_a_cursor_of_another_list_is_refused(rows: PgConnection) -> None:
    with pytest.raises(FilterInvalid, match=r"^cursor: "):
        keys_page(rows, cursor="x")


def test_a_key_that_has_expired_is_listed_as_such(call: Call, rows: PgConnection) -> None:
    made = created(call)
    fetch_all(
        rows,
        "UPDATE rowcall.api_keys SET expires_at = %(now)s WHERE id = %(id)s",
        {"now": datetime.now(UTC) - timedelta(hours=1), **made},
    )
    [listed] = [item for item in told(call("GET", "/v1/keys?limit=200"))["items"] if item["id"] == made["id"]]
    assert listed["state"] == "expired"


def test_a_key_may_expire_at_a_time_with_any_offset(call: Call) -> None:
    body = {"name": "far east", "scopes": ["read"], "expires_at": "2090-01-01T00:00:00+23:59"}
    made = call("POST", "/v1/keys", json=body)
    assert (made.status_code, told(made)["expires_at"]) == (201, "2089-12-31T00:01:00+00:00")
