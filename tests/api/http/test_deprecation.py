"""A deprecated operation says so in each response and in /openapi.json, for as long as docs/api.md promises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rowcall.base import logs
from rowcall_api import deprecation
from rowcall_api.app import create_app
from rowcall_api.deprecation import NOTICE, Deprecated
from tests.api.conftest import Call, told
from tests.support.processes import ROOT

SINCE = datetime(2030, 1, 1, tzinfo=UTC)


def test_its_responses_say_since_when_and_until_when_and_others_do_not(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Deprecated(SINCE, SINCE + NOTICE, "GET /v1/queues")
    monkeypatch.setitem(deprecation.DEPRECATED, "stats.show_stats", old)
    for scope, status in (("read", 200), ("enqueue", 403)):
        answer = call("GET", "/v1/stats", scope=scope)
        assert answer.status_code == status
        assert answer.headers["Deprecation"] == "@1893456000"
        assert answer.headers["Sunset"] == "Sun, 30 Jun 2030 00:00:00 GMT"
    assert {"Deprecation", "Sunset"} & {*call("GET", "/v1/queues").headers.keys()} == set()


def test_it_is_deprecated_in_the_document_with_what_to_use_instead(
    module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Deprecated(SINCE, SINCE + NOTICE, "GET /v1/queues")
    monkeypatch.setitem(deprecation.DEPRECATED, "stats.show_stats", old)
    app = create_app(module_url)
    paths = told(app.test_client().get("/openapi.json"))["paths"]
    app.extensions["database"].dispose()
    logs.use(logs.Log())
    described = paths["/v1/stats"]["get"]
    assert described["deprecated"] is True
    assert "Deprecated, and will be removed after 2030-06-30: use GET /v1/queues." in described["description"]
    assert "deprecated" not in paths["/v1/queues"]["get"]


def test_none_is_removed_sooner_than_the_page_promises() -> None:
    with pytest.raises(AssertionError, match="180 days"):
        Deprecated(SINCE, SINCE + NOTICE - timedelta(days=1), "another")
    assert f"at least {NOTICE.days} days" in " ".join((ROOT / "docs" / "api.md").read_text().split())
