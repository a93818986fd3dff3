"""More tests of the bakery: what was enqueued, and in which database."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rowcall import enqueue
from rowcall_worker.testing import Rowcall

from .job_types import BAKE, REMIND


def test_what_was_enqueued_is_found_by_type_payload_and_key(rowcall: Rowcall) -> None:
    run_id = rowcall.enqueue(BAKE, {"loaf_id": 7}, key="order 1")
    rowcall.enqueue(BAKE, {"loaf_id": 8})
    assert rowcall.assert_enqueued(BAKE, {"loaf_id": 7}) == run_id
    assert rowcall.assert_enqueued("bakery_bake", key="bake:7") == run_id
    assert rowcall.assert_enqueued(BAKE, key="order 1") == run_id
    rowcall.assert_none_enqueued(BAKE, {"loaf_id": 9})
    rowcall.assert_none_enqueued(REMIND)


@pytest.mark.parametrize(
    ("payload", "key", "complaint"),
    [
        ({"loafid": 7}, None, "runs of bakery_bake have no field 'loafid'; they have: loaf_id, ends"),
        ({1: 2}, None, "runs of bakery_bake have no field '1'"),
        (None, 7, "a key must be text, not 7"),
    ],
)
def test_what_no_run_can_have_is_an_error_and_no_green_test(
    rowcall: Rowcall, payload: Any, key: Any, complaint: str
) -> None:
    for expectation in (rowcall.assert_none_enqueued, rowcall.assert_enqueued):
        with pytest.raises((TypeError, ValueError), match=complaint):
            expectation(BAKE, payload, key=key)


@pytest.fixture
def connected(rowcall: Rowcall) -> Iterator[Rowcall]:
    """Leave a connection open, which must not keep the database from being dropped."""
    with rowcall.transaction():
        yield rowcall


def test_each_test_has_a_database_of_its_own(connected: Rowcall) -> None:
    connected.assert_none_enqueued(BAKE)
    with connected.transaction() as connection:
        enqueue(connection, "bakery_bake", {"loaf_id": 7})
    connected.assert_enqueued(BAKE)


def test_threads_of_a_test_take_turns(rowcall: Rowcall) -> None:
    runs = [rowcall.enqueue(BAKE, {"loaf_id": number}) for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert [done.result["baked"] for done in threads.map(rowcall.perform, runs)] == [0, 1, 2, 3]


def test_what_is_no_id_is_refused(rowcall: Rowcall) -> None:
    with rowcall.transaction() as connection:
        asked: Any = BAKE.enqueue(connection, {"loaf_id": 7})
    with pytest.raises(TypeError, match="a run's id, such as the run_id of what enqueue returned, not Enqueued"):
        rowcall.perform(asked)
