"""Connections of a worker's threads: an outage is logged once when it begins, and once when it is over."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest

from rowcall_worker.runtime.connection import Link, Outage
from tests.support.logged import logged


@pytest.fixture
def links(module_url: str) -> Iterator[tuple[Link, Link]]:
    """Yield the links of two threads, both connected."""
    outage = Outage()
    one, other = Link(module_url, "one", outage), Link(module_url, "other", outage)
    one.get()
    other.get()
    yield one, other
    one.close()
    other.close()


def test_an_outage_is_told_once_and_over_with_the_first_connection_made_since_that_works(
    links: tuple[Link, Link],
) -> None:
    one, other = links
    with logged() as said:
        for _ in range(2):
            one.lost(psycopg2.OperationalError("the server is gone"))
        other.works()  # a statement that started before
        assert [line["event"] for line in said] == ["database lost"]
        other.get()
        other.works()
        assert [line["event"] for line in said] == ["database lost", "database back"]
        one.get()
        one.works()
    assert len(said) == 2
