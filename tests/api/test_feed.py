"""The reader of the feed: what its clients get after a pause, and when it reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy

from rowcall import queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database.pool import open_pool
from rowcall_api.http.waiting import feed as feed_module
from rowcall_api.http.waiting.feed import Client, Feed, Filter
from rowcall_api.http.waiting.poller import Poller
from tests.api.conftest import let_nobody_in

OPERATOR = Operator("a test")


class StillPoller(Poller):
    """One that reads only when the test does."""

    def wake(self) -> None:
        """Start no thread."""


@pytest.fixture
def pool(fresh_url: str) -> Iterator[sqlalchemy.Engine]:
    pool = open_pool(fresh_url, 1)
    yield pool
    pool.dispose()


@pytest.fixture
def key_id(fresh_url: str) -> int:
    with database.transaction(fresh_url) as connection:
        return api_keys.id_of(connection, api_keys.create_key(connection, "reader", ["read"], OPERATOR))


@pytest.fixture
def feed(pool: sqlalchemy.Engine) -> Feed:
    return Feed(pool, StillPoller(), heartbeat=30)


def told(feed: Feed, client: Client) -> list[str]:
    """Read once, and return the kinds of the client's events."""
    feed.run_once()
    return [line.removeprefix("event: ") for line in (client.take() or b"").decode().splitlines() if "event" in line]


def enqueue(url: str) -> None:
    with database.transaction(url) as connection:
        queue.enqueue(connection, "noop", {})


def test_after_a_pause_all_clients_are_told_to_read_the_lists(
    feed: Feed, key_id: int, fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(Filter(), None, key_id)
    feed.begin(client, list)
    assert told(feed, client) == ["reset"]
    enqueue(fresh_url)
    assert told(feed, client) == ["run"]
    monkeypatch.setattr(feed_module, "PAUSE_SECONDS", -1.0)
    enqueue(fresh_url)
    assert told(feed, client) == ["reset"]


def test_an_outage_ends_neither_the_feed_nor_its_clients(
    feed: Feed, key_id: int, fresh_url: str, server_url: str
) -> None:
    client = Client(Filter(), None, key_id)
    feed.begin(client, list)
    assert told(feed, client) == ["reset"]
    let_nobody_in(fresh_url)
    assert told(feed, client) == []
    with database.transaction(server_url) as connection:
        connection.autocommit = True
        name = fresh_url.rsplit("/", 1)[1]
        database.fetch_all(connection, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    enqueue(fresh_url)
    assert told(feed, client) in (["run"], ["reset"])  # on a busy machine, the outage may have been a long one


def test_it_is_needed_while_there_is_a_client_and_for_a_while_after(
    feed: Feed, key_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not feed.needed
    end = feed.begin(Client(Filter(), None, key_id), list)
    assert feed.needed
    end()
    assert feed.needed
    monkeypatch.setattr(feed_module, "LINGER_SECONDS", 0.0)
    assert not feed.needed


def test_a_client_that_has_too_much_unsent_is_given_up(
    feed: Feed, key_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "UNSENT_BYTES", 10)
    client = Client(Filter(), None, key_id)
    feed.begin(client, list)
    feed.run_once()
    assert (client.take(), client.refused) == (None, False)


def test_a_client_whose_key_expires_is_told_nothing_more(feed: Feed, key_id: int, fresh_url: str) -> None:
    client = Client(Filter(), None, key_id)
    feed.begin(client, list)
    assert told(feed, client) == ["reset"]
    with database.transaction(fresh_url) as connection:
        expire = "UPDATE rowcall.api_keys SET created_at = now() - interval '1 day', expires_at = now()"
        database.fetch_all(connection, expire)
        queue.enqueue(connection, "noop", {})
    feed.run_once()
    assert client.take() is None
