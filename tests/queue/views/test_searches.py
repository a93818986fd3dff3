"""Searches in payloads are limited in what they may contain and in how long they take, however large the rows are."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import FilterInvalid, SearchTooSlow, TooManySearches
from rowcall.base.jsonb import size_of, stored
from rowcall.queue import Filter, count_runs, limit_searches, list_runs
from rowcall.queue.views.filters import SOUGHT_BYTES, SOUGHT_MOST
from tests.support.slow_search import SLOW, fill, nested

KEY, ANOTHER = 1, 2


@pytest.mark.parametrize(
    "payload",
    [
        {"numbers": list(range(SOUGHT_MOST))},
        {"a": {"b": [[], {}, None, False, ""] * (SOUGHT_MOST // 5)}},
        {"text": "x" * (SOUGHT_BYTES - 12)},
        {"deep": nested(400, 1)},
    ],
    ids=["values", "empty values", "bytes", "depth"],
)
def test_a_filter_of_payloads_may_be_as_large_as_its_bounds(connection: PgConnection, payload: dict[str, Any]) -> None:
    assert list_runs(connection, Filter(payload=payload)).runs == []


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        ({"numbers": list(range(SOUGHT_MOST + 1))}, "payload: has 51 values; the limit is 50"),
        ({"a": {"b": [[], {}, None, False, ""] * 10}, "c": 1}, "payload: has 51 values; the limit is 50"),
        ({"text": "x" * (SOUGHT_BYTES - 11)}, "payload: is 2049 bytes; the limit is 2048"),
        ({"numbers": [1e308] * 10}, r"payload: is 3\d\d\d bytes; the limit is 2048"),
        ({"deep": nested(2000, 1)}, "payload: "),
    ],
    ids=["values", "empty values", "bytes", "digits", "depth"],
)
def test_a_larger_one_is_refused_by_name(payload: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FilterInvalid, match=complaint):
        Filter(payload=payload)


def test_a_search_through_large_payloads_is_ended_in_time_and_says_how_to_narrow_it(
    fresh_url: str,
) -> None:
    sought = Filter(payload=SLOW)
    assert size_of(stored(sought.payload)) > SOUGHT_BYTES * 0.95
    with database.transaction(fresh_url) as connection:
        fill(connection)
        [largest] = fetch_all(connection, "SELECT max(octet_length(payload::text)) AS size FROM rowcall.job_runs")
        assert 50_000 < largest["size"] < 65_536
        for search in (list_runs, count_runs):
            fetch_all(connection, "SAVEPOINT search")
            with pytest.raises(
                SearchTooSlow, match="longer than 0.3 seconds and was stopped: narrow it, for example with created_"
            ):
                search(connection, sought, seconds=0.3)
            fetch_all(connection, "ROLLBACK TO search")


def test_a_key_may_search_twice_at_a_time_and_again_once_one_has_ended(module_url: str) -> None:
    sought = Filter(payload={"a": 1})
    first, second, third = (database.connect_internal(module_url) for _ in range(3))
    for connection in (first, second):
        limit_searches(connection, sought, KEY)
    with pytest.raises(TooManySearches, match="already running 2 payload searches"):
        limit_searches(third, sought, KEY)
    limit_searches(third, Filter(queue="mail"), KEY)
    limit_searches(third, sought, ANOTHER)
    first.rollback()
    limit_searches(third, sought, KEY)
    for connection in (first, second, third):
        connection.close()
