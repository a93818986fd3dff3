"""Connections of a worker's threads: an outage is logged once when it begins, and once when it is over."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from psycopg2.errors import LockNotAvailable, SerializationFailure

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall_worker.runtime import connection
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


def stopped(link: Link, url: str) -> None:
    """Let a lock on a table stop a statement of this link."""
    with database.transaction(url) as holder:
        fetch_all(holder, "LOCK TABLE rowcall.queues IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(LockNotAvailable) as refused:
            fetch_all(link.get(), "SELECT FROM rowcall.queues")
    link.lost(refused.value)


def test_a_lock_that_stops_a_worker_for_long_is_told_once_until_it_is_released(
    links: tuple[Link, Link], module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = links
    with logged() as said:
        stopped(one, module_url)  # locks of a moment are usual
        assert said == []
        monkeypatch.setattr(connection, "HINDERED_SECONDS", 0)
        for link in (one, other, one):
            stopped(link, module_url)
        assert [line["event"] for line in said] == ["database locked"]
        assert "another transaction holds a needed lock" in said[0]["error"]
        one.works()
        stopped(one, module_url)
        assert len(said) == 1  # the other has waited all the time
        one.works()
        other.works()
        stopped(one, module_url)
    assert len(said) == 2


def test_an_error_that_does_not_pass_for_long_is_told_once(
    links: tuple[Link, Link], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = links
    raised = "DO $$ BEGIN RAISE EXCEPTION 'not this order' USING ERRCODE = '40001'; END $$"
    with logged() as said:
        for seconds in (3, 0, 0):
            monkeypatch.setattr(connection, "HINDERED_SECONDS", seconds)
            for link in (one, other):
                with pytest.raises(SerializationFailure) as refused:
                    fetch_all(link.get(), raised)
                link.lost(refused.value)
    assert [(line["event"], "not this order" in line["error"]) for line in said] == [
        ("database refuses statements", True)
    ]
