"""The bakery's own tests, continued: what was enqueued, and in which database."""

from __future__ import annotations

from collections.abc import Iterator

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


@pytest.fixture
def connected(rowcall: Rowcall) -> Iterator[Rowcall]:
    """A connection that a test leaves open keeps nobody from dropping the database."""
    with rowcall.transaction():
        yield rowcall


def test_each_test_has_a_database_of_its_own(connected: Rowcall) -> None:
    connected.assert_none_enqueued(BAKE)
    with connected.transaction() as connection:
        enqueue(connection, "bakery_bake", {"loaf_id": 7})
    connected.assert_enqueued(BAKE)
