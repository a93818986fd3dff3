"""Three servers under Patroni, with synchronous replication: whatever fails, what was acknowledged happens once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any

import marshmallow
import psycopg2
import pytest

from rowcall import queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.errors import DatabaseUnreachable
from rowcall.job_types import JobType
from rowcall_migrations.migrate import migrate
from tests.api.serving import JSON, Server, request, served
from tests.support.page import blocks
from tests.support.patroni import Cluster, Node, cluster
from tests.support.processes import running, wait_until
from tests.support.shop import Shop

pytestmark = [pytest.mark.timeout(600), *(pytest.mark.program(name) for name in ("patroni", "etcd"))]


class Shipment(marshmallow.Schema):
    """The payload of shop_ship, as the test sends it."""

    order_id = marshmallow.fields.Integer(required=True)
    ends = marshmallow.fields.String(required=True)


SHIP = JobType("shop_ship", schema=Shipment)

WORKERS = 2

MAINTENANCE, *_ = blocks("high-availability.md", "sh")

ACCEPTED = {200, 202}

# How many orders are acknowledged before something fails, and how many more afterwards.
SOME = 50

SHIPPED = "SELECT order_id, count(*) AS times FROM shipments GROUP BY order_id ORDER BY order_id"
WRITE = "INSERT INTO shipments (order_id) VALUES (0)"


@dataclass
class Orders:
    """Enqueues one order after another from two threads, and repeats each until it is acknowledged.

    One thread is an app, which enqueues odd numbers itself; the other one is a client of the API, with even numbers.
    """

    url: str
    api: Server
    key: str
    statuses: Counter[int] = field(default_factory=Counter)
    acknowledged: list[int] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def run(self, number: int) -> None:
        """Enqueue every second number from this one, until the end."""
        while not self._stopped.is_set():
            while not self._is_acknowledged(number):
                sleep(0.1)  # before it is repeated, as a web client would
            self.acknowledged.append(number)
            number += 2

    def _is_acknowledged(self, number: int) -> bool:
        payload = {"order_id": number, "ends": "well"}
        if number % 2 == 0:
            return self._is_accepted(payload, f"order {number}")
        try:
            with database.transaction(self.url) as connection:
                queue.enqueue(connection, SHIP, payload, key=f"order {number}")
        except (psycopg2.Error, DatabaseUnreachable):
            return False
        return True

    def _is_accepted(self, payload: dict[str, Any], key: str) -> bool:
        body = json.dumps({"job_type": SHIP.name, "payload": payload}).encode()
        answer = self.api.ask(request("POST", "/v1/runs", self.key, JSON, f"Idempotency-Key: {key}", body=body))
        self.statuses[answer.status] += 1
        return answer.status in ACCEPTED

    def wait_for_more(self, most: int = SOME) -> None:
        """Return when this many more orders have been acknowledged."""
        enough = len(self.acknowledged) + most
        wait_until(lambda: len(self.acknowledged) >= enough, f"{most} more orders are acknowledged")

    def stop(self) -> None:
        """Let the last order be acknowledged."""
        self._stopped.set()


@contextmanager
def under_load(shop: Shop, folder: Path) -> Iterator[Orders]:
    """Let orders come in and be shipped during the block; afterwards, check that each was shipped once."""
    with database.transaction(shop.url) as connection:
        key = api_keys.create_key(connection, "orders", ["enqueue"], Operator("tests"))
    with ExitStack() as stack:
        orders = Orders(shop.url, stack.enter_context(served(shop.environment, folder)), key)
        threads = [threading.Thread(target=orders.run, args=[first]) for first in (1, 2)]
        for _ in range(WORKERS):
            stack.enter_context(running(shop.environment, "worker", "run"))
        for thread in threads:
            thread.start()
        try:
            orders.wait_for_more()
            yield orders
            orders.wait_for_more()
        finally:
            orders.stop()
            for thread in threads:
                thread.join()
        shop.connect()  # the server that it was connected to may be gone
        shop.wait_for_all(len(orders.acknowledged))
    assert shop.sql(SHIPPED) == [{"order_id": number, "times": 1} for number in sorted(orders.acknowledged)]
    # An outage is answered as such: nothing else goes wrong.
    assert orders.statuses.keys() - ACCEPTED <= {503}
    assert shop.count("succeeded") == len(shop.sql("SELECT FROM rowcall.job_runs")) == len(orders.acknowledged)


def own_url(node: Node) -> str:
    """Return the URL of this server, whether it leads or not."""
    return f"postgresql://postgres@127.0.0.1:{node.port}/postgres"


def accepts_writes(node: Node) -> bool:
    """Whether this server accepts a write to the shop; it is rolled back."""
    try:
        with closing(database.connect(own_url(node))) as connection:
            database.fetch_all(connection, WRITE)
    except (psycopg2.Error, DatabaseUnreachable):
        return False
    return True


def at_most_one_accepts_writes(patroni: Cluster) -> bool:
    """Whether no two servers accept writes; on a busy machine, Patroni may have changed the leader once more."""
    return sum(map(accepts_writes, patroni.nodes)) <= 1


def another_leads(patroni: Cluster, old: Node) -> Callable[[], bool]:
    return lambda: any(node.is_in("primary") for node in patroni.nodes if node is not old)


def the_leader_is_killed(patroni: Cluster, orders: Orders) -> None:
    old = patroni.leader()
    old.kill()
    wait_until(another_leads(patroni, old), "another node leads")
    orders.wait_for_more()
    old.start()
    patroni.wait_until_whole()
    assert at_most_one_accepts_writes(patroni)


def the_leader_hands_over(patroni: Cluster, orders: Orders) -> None:
    old = patroni.leader()
    look, hand_over = MAINTENANCE.splitlines()
    assert old.run(look)
    wait_until(lambda: old.run(hand_over), "the leader hands over, which it refuses until the standby has caught up")
    wait_until(another_leads(patroni, old), "another node leads")
    orders.wait_for_more()
    patroni.wait_until_whole()
    assert at_most_one_accepts_writes(patroni)


def the_leader_is_cut_off_from_etcd(patroni: Cluster, orders: Orders) -> None:
    old = patroni.leader()
    with closing(database.connect(own_url(old))) as late:
        late.autocommit = True
        database.fetch_all(late, "SELECT 1")
        old.etcd.flows.clear()
        wait_until(another_leads(patroni, old), "another node leads")
        with pytest.raises(psycopg2.Error):
            database.fetch_all(late, WRITE)
    assert not accepts_writes(old)
    orders.wait_for_more()
    old.etcd.flows.set()
    patroni.wait_until_whole()
    assert at_most_one_accepts_writes(patroni)


def the_synchronous_standby_is_lost(patroni: Cluster, orders: Orders) -> None:
    lost = patroni.standby()
    lost.kill()
    orders.wait_for_more()
    lost.start()
    patroni.wait_until_whole()


def test_what_was_acknowledged_happens_once_whatever_fails(environment: dict[str, str], tmp_path: Path) -> None:
    with cluster("machine") as patroni:
        migrate(patroni.url, lock_timeout=3)
        with under_load(Shop(environment, patroni.url), tmp_path) as orders:
            the_leader_is_killed(patroni, orders)
            the_leader_hands_over(patroni, orders)
            the_leader_is_cut_off_from_etcd(patroni, orders)
            the_synchronous_standby_is_lost(patroni, orders)
