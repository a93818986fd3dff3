"""Searches in payloads over HTTP: limited, two at a time per key, without an effect on other requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from werkzeug.test import TestResponse

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from tests.api.conftest import Call, told
from tests.support.processes import wait_until

SEARCH = f"/v1/runs?{urlencode({'payload': json.dumps({'user_id': 1})})}"
MANY = {"action": "cancel", "filter": {"payload": {"user_id": 1}}}

WAITING = """
SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'rowcall.job_runs'::regclass
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@contextmanager
def held(url: str) -> Iterator[PgConnection]:
    """Let no search finish within the block."""
    with database.transaction(url) as holder:
        fetch_all(holder, "LOCK TABLE rowcall.job_runs IN ACCESS EXCLUSIVE MODE")
        yield holder


def two_searches(pool: ThreadPoolExecutor, call: Call, holder: PgConnection) -> list[Future[TestResponse]]:
    """Start two searches under one key, one of them for a preview; they wait."""
    searches = [pool.submit(call, "GET", SEARCH), pool.submit(call, "POST", "/v1/operations/preview", json=MANY)]
    wait_until(lambda: fetch_value(holder, WAITING) == 2, "both wait")
    return searches


def test_a_third_search_at_a_time_is_told_to_come_again_and_the_next_one_is_let_in(call: Call, module_url: str) -> None:
    with ThreadPoolExecutor() as pool, held(module_url) as holder:
        searches = two_searches(pool, call, holder)
        for method, path, options in (("GET", SEARCH, {}), ("POST", "/v1/operations", {"json": MANY})):
            answer = call(method, path, **options)
            assert (answer.status_code, answer.mimetype) == (429, "application/problem+json")
            assert told(answer)["type"] == "urn:rowcall:problem:too-many-searches"
            assert int(answer.headers["Retry-After"]) > 0
        holder.rollback()
        assert [search.result().status_code for search in searches] == [200, 200]
    assert call("GET", SEARCH).status_code == 200


def test_meanwhile_everything_else_is_answered_and_another_key_may_search(call: Call, module_url: str) -> None:
    with ThreadPoolExecutor() as pool, held(module_url) as holder:
        searches = two_searches(pool, call, holder)
        for _ in range(10):
            assert call("GET", SEARCH).status_code == 429
            assert call("GET", "/v1/definitions").status_code == 200
        other = pool.submit(call, "GET", SEARCH, scope="read")
        wait_until(lambda: fetch_value(holder, WAITING) == 3, "it waits too")
        holder.rollback()
        assert [search.result().status_code for search in (*searches, other)] == [200, 200, 200]


@pytest.mark.parametrize("payload", [{"numbers": [*range(51)]}, {"text": "x" * 2048}], ids=["values", "bytes"])
def test_a_filter_that_is_too_large_is_refused_by_name(refused: Call, payload: dict[str, object]) -> None:
    refused("GET", f"/v1/runs?{urlencode({'payload': json.dumps(payload)})}", 422, "payload")
    refused("POST", "/v1/operations", 422, "payload", json={"action": "cancel", "filter": {"payload": payload}})
